#include "quoka/capture/detail/layer_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "quoka/core/error.hpp"

namespace quoka::capture_detail {
namespace {

Index layer_number(const Hdf5Group& layers, const std::string& name) {
  Index number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  require<FormatError>(error == std::errc{} && end == name.data() + name.size() && number >= 0,
                       "{}: '{}' is not a layer number; name the groups of layers 000, 001, ...",
                       layers.where(), name);
  return number;
}

bool flag(const Hdf5Group& group, const std::string& name) {
  const auto value = group.attribute<std::uint8_t>(name);
  require<FormatError>(value <= 1, "{}: attribute '{}' is {}; it must be 0 or 1", group.where(),
                       name, value);
  return value == 1;
}

Index at_least(const Hdf5Group& group, const std::string& name, Index minimum) {
  const Index value = group.attribute<std::int64_t>(name);
  require<FormatError>(value >= minimum,
                       "{}: attribute '{}' is {}, less than {}; write the right value",
                       group.where(), name, value, minimum);
  return value;
}

// An optional tensor under a misspelt or damaged name would otherwise be silently absent.
void check_members(const Hdf5Group& group) {
  constexpr std::array<std::string_view, 7> known = {"q",   "k",     "v",           "out",
                                                     "lse", "sinks", "alibi_slopes"};
  constexpr Index max_members = 100;
  for (const std::string& name : group.children(max_members)) {
    require<FormatError>(std::ranges::find(known, name) != known.end(),
                         "{}: '{}' is no tensor of a layer; known are {}", group.where(), name,
                         fmt::join(known, ", "));
  }
}

std::string one_of(const Hdf5Group& group, const std::string& name,
                   std::initializer_list<std::string_view> allowed) {
  auto value = group.attribute<std::string>(name);
  require<FormatError>(std::find(allowed.begin(), allowed.end(), value) != allowed.end(),
                       "{}: attribute '{}' is '{}'; use one of: {}", group.where(), name, value,
                       fmt::join(allowed, ", "));
  return value;
}

void read_shape(const Hdf5Group& group, CaptureLayer& layer) {
  layer.shape.n_q_heads = at_least(group, "n_q_heads", 1);
  layer.shape.n_kv_heads = at_least(group, "n_kv_heads", 1);
  layer.shape.k_head_dim = at_least(group, "k_head_dim", 1);
  layer.shape.v_head_dim = at_least(group, "v_head_dim", 1);
  require<FormatError>(
      layer.shape.n_q_heads % layer.shape.n_kv_heads == 0,
      "{}: n_q_heads {} is not a multiple of n_kv_heads {} (query head h reads KV "
      "head h / (n_q_heads / n_kv_heads)); capture k and v before heads are repeated",
      group.where(), layer.shape.n_q_heads, layer.shape.n_kv_heads);
  layer.kv_shared_from = at_least(group, "kv_shared_from", -1);
  require<FormatError>(layer.kv_shared_from < layer.layer_idx,
                       "{}: kv_shared_from {} is not a layer before {}; use -1 for none",
                       group.where(), layer.kv_shared_from, layer.layer_idx);
  layer.v_equals_k_prefix = at_least(group, "v_equals_k_prefix", 0);
  require<FormatError>(
      layer.v_equals_k_prefix == 0 || (layer.v_equals_k_prefix == layer.shape.v_head_dim &&
                                       layer.v_equals_k_prefix <= layer.shape.k_head_dim),
      "{}: v_equals_k_prefix {} must be 0 or equal to v_head_dim {} and at most k_head_dim {}",
      group.where(), layer.v_equals_k_prefix, layer.shape.v_head_dim, layer.shape.k_head_dim);
}

void read_softcap(const Hdf5Group& group, CaptureLayer& layer) {
  layer.logit_softcap = group.attribute<double>("logit_softcap");
  layer.softcap_applied = flag(group, "softcap_applied");
  require<FormatError>(layer.logit_softcap >= 0 && std::isfinite(layer.logit_softcap),
                       "{}: logit_softcap {} is not a number >= 0; use 0 for none", group.where(),
                       layer.logit_softcap);
  require<FormatError>(
      layer.logit_softcap > 0 || !layer.softcap_applied,
      "{}: softcap_applied is 1 and logit_softcap is 0; write the cap that was used",
      group.where());
  layer.rules.softcap = layer.softcap_applied ? layer.logit_softcap : 0;
}

void read_rules(const Hdf5Group& group, CaptureLayer& layer) {
  AttentionRules& rules = layer.rules;
  rules.scale = group.attribute<double>("softmax_scale");
  require<FormatError>(
      rules.scale > 0 && std::isfinite(rules.scale),
      "{}: softmax_scale {} is not a number > 0 (it is the exact multiplier of q.k); "
      "write the one that the model used",
      group.where(), rules.scale);
  require<FormatError>(flag(group, "causal"),
                       "{}: causal is 0 and must be 1 (chunked prefill is only defined for causal "
                       "attention); leave this layer out",
                       group.where());
  rules.q_offset = at_least(group, "q_offset", 0);
  rules.sliding_window = at_least(group, "sliding_window", 0);
  rules.attention_chunk = at_least(group, "attention_chunk", 0);
  read_softcap(group, layer);
  const bool scaled = flag(group, "alibi_scaled");
  if (flag(group, "alibi")) {
    rules.alibi = scaled ? Alibi::scaled : Alibi::plain;
  }
  layer.position_kind =
      one_of(group, "position_kind", {"rope", "rope_partial", "nope", "alibi", "mla"});
  layer.qk_norm = group.attribute<std::string>("qk_norm");
  layer.out_kind = one_of(group, "out_kind", {"fp32_from_stored", "model_native"});
  if (group.has_attribute("rope_json")) {
    layer.rope_json = group.attribute<std::string>("rope_json");
  }
}

void check_rank(const Hdf5Dataset& tensor, std::size_t rank, std::string_view axes) {
  const std::vector<Index>& shape = tensor.info().shape;
  require<FormatError>(shape.size() == rank,
                       "{} has {} axes, shape {}, instead of {}, {} (a capture holds one unpadded "
                       "sequence without a batch axis); store each sequence in its own file",
                       tensor.where(), shape.size(), shape_text(shape), rank, axes);
}

void check_shape(const Hdf5Dataset& tensor, const std::vector<Index>& expected,
                 std::string_view axes) {
  check_rank(tensor, expected.size(), axes);
  require<FormatError>(tensor.info().shape == expected,
                       "{} has shape {}, but the attributes and the other tensors say {} {}; write "
                       "the sizes of what was captured",
                       tensor.where(), shape_text(tensor.info().shape), shape_text(expected), axes);
}

// The per-head float32 numbers that a flag promises; none may exist without the flag.
std::vector<float> read_per_head(const Hdf5Group& group, const std::string& name, bool promised,
                                 std::string_view flag_name, Index n_q_heads) {
  require<FormatError>(promised == group.contains(name),
                       "{}: attribute '{}' is {} and the dataset '{}' {}; make the two agree",
                       group.where(), flag_name, promised ? 1 : 0, name,
                       promised ? "is missing" : "exists");
  if (!promised) {
    return {};
  }
  const Hdf5Dataset dataset = group.dataset(name);
  check_shape(dataset, {n_q_heads}, "[n_q_heads]");
  auto values = dataset.read<float>();
  for (std::size_t head = 0; head < values.size(); ++head) {
    require<FormatError>(std::isfinite(values[head]), "{} is {} at head {}; write finite numbers",
                         dataset.where(), values[head], head);
  }
  return values;
}

void open_tensors(const Hdf5Group& group, const CaptureLimits& limits, OpenLayer& open) {
  DatasetLimits dataset_limits;
  dataset_limits.max_dim = limits.max_dim;
  dataset_limits.max_bytes = limits.max_tensor_bytes;
  CaptureLayer& layer = open.layer;
  const bool v_is_stored = layer.v_equals_k_prefix == 0;
  require<FormatError>(v_is_stored || !group.contains("v"),
                       "{}: v is stored although v_equals_k_prefix is {}; remove one of them",
                       group.where(), layer.v_equals_k_prefix);
  layer.has_out = group.contains("out");
  layer.has_lse = group.contains("lse");
  const std::array<std::pair<const char*, bool>, 5> tensors = {{{"q", true},
                                                                {"k", true},
                                                                {"v", v_is_stored},
                                                                {"out", layer.has_out},
                                                                {"lse", layer.has_lse}}};
  for (const auto& [name, is_stored] : tensors) {
    if (is_stored) {
      open.datasets.emplace(name, group.dataset(name, dataset_limits));
    }
  }
}

void check_tensors(OpenLayer& open) {
  AttentionShape& shape = open.layer.shape;
  const Hdf5Dataset& q = open.datasets.at("q");
  const Hdf5Dataset& k = open.datasets.at("k");
  check_rank(q, 3, "[n_q_heads, n_tokens, k_head_dim]");
  check_rank(k, 3, "[n_kv_heads, n_keys, k_head_dim]");
  shape.n_tokens = q.info().shape[1];
  shape.n_keys = k.info().shape[1];
  check_shape(q, {shape.n_q_heads, shape.n_tokens, shape.k_head_dim},
              "[n_q_heads, n_tokens, k_head_dim]");
  check_shape(k, {shape.n_kv_heads, shape.n_keys, shape.k_head_dim},
              "[n_kv_heads, n_keys, k_head_dim]");
  open.layer.storage = storage_of(q);
  static_cast<void>(storage_of(k));
  if (open.datasets.contains("v")) {
    check_shape(open.datasets.at("v"), {shape.n_kv_heads, shape.n_keys, shape.v_head_dim},
                "[n_kv_heads, n_keys, v_head_dim]");
    static_cast<void>(storage_of(open.datasets.at("v")));
  }
  if (open.layer.has_out) {
    check_shape(open.datasets.at("out"), {shape.n_q_heads, shape.n_tokens, shape.v_head_dim},
                "[n_q_heads, n_tokens, v_head_dim]");
    open.layer.out_storage = storage_of(open.datasets.at("out"));
  }
  if (open.layer.has_lse) {
    const Hdf5Dataset& lse = open.datasets.at("lse");
    check_shape(lse, {shape.n_q_heads, shape.n_tokens}, "[n_q_heads, n_tokens]");
    require<FormatError>(lse.info().type == ElementType::float32, "{} holds {}; store float32",
                         lse.where(), name_of(lse.info().type));
  }
}

}  // namespace

StorageType storage_of(const Hdf5Dataset& tensor) {
  constexpr std::string_view how_to_store_bfloat16 =
      "a 16-bit HDF5 float (sign bit 15, 8 exponent bits from bit 7, 7 mantissa bits from bit 0, "
      "bias "
      "127) or uint16 with the attribute encoding = \"bfloat16\"";
  switch (tensor.info().type) {
    case ElementType::float16:
      return StorageType::float16;
    case ElementType::bfloat16:
      return StorageType::bfloat16;
    case ElementType::float32:
      return StorageType::float32;
    case ElementType::uint16:
      require<FormatError>(
          tensor.has_attribute("encoding"),
          "{} holds uint16 without the attribute 'encoding' (nothing is guessed); if "
          "these are bfloat16 bits, add encoding = \"bfloat16\"",
          tensor.where());
      require<FormatError>(tensor.attribute<std::string>("encoding") == "bfloat16",
                           "{}: encoding is '{}'; the only one known is \"bfloat16\"",
                           tensor.where(), tensor.attribute<std::string>("encoding"));
      return StorageType::tagged_bfloat16;
    case ElementType::opaque:
      throw FormatError(
          fmt::format("{} holds opaque {}-byte elements (h5py makes them of an ml_dtypes array; "
                      "what they mean is "
                      "lost); store bfloat16 as {}",
                      tensor.where(), tensor.info().opaque_size, how_to_store_bfloat16));
    default:
      throw FormatError(fmt::format(
          "{} holds {}, which no capture may hold; store float16, float32, or bfloat16 as {}",
          tensor.where(), name_of(tensor.info().type), how_to_store_bfloat16));
  }
}

OpenLayer open_layer(const Hdf5Group& layers, const std::string& name,
                     const CaptureLimits& limits) {
  OpenLayer open;
  CaptureLayer& layer = open.layer;
  layer.layer_idx = layer_number(layers, name);
  const Hdf5Group group = layers.group(name);
  const Index stored_index = at_least(group, "layer_index", 0);
  require<FormatError>(stored_index == layer.layer_idx,
                       "{}: layer_index is {}, the name says {}; make the two agree", group.where(),
                       stored_index, layer.layer_idx);
  check_members(group);
  read_shape(group, layer);
  read_rules(group, layer);
  open_tensors(group, limits, open);
  check_tensors(open);
  require<FormatError>(
      layer.shape.n_keys == layer.rules.q_offset + layer.shape.n_tokens,
      "{}: k has {} rows, but q_offset {} + {} rows of q = {} (the last query sees "
      "the last key); write the position of the first query as q_offset",
      group.where(), layer.shape.n_keys, layer.rules.q_offset, layer.shape.n_tokens,
      layer.rules.q_offset + layer.shape.n_tokens);
  const Index n_q_heads = layer.shape.n_q_heads;
  const bool has_alibi = layer.rules.alibi != Alibi::none;
  layer.rules.sinks =
      read_per_head(group, "sinks", flag(group, "has_sinks"), "has_sinks", n_q_heads);
  layer.rules.alibi_slopes = read_per_head(group, "alibi_slopes", has_alibi, "alibi", n_q_heads);
  return open;
}

}  // namespace quoka::capture_detail
