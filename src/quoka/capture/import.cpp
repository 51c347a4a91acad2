#include "quoka/capture/import.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <type_traits>

#include "quoka/capture/reader.hpp"
#include "quoka/capture/safetensors.hpp"
#include "quoka/capture/writer.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/half.hpp"

namespace quoka {
namespace {

constexpr Index block_rows = 1024;

std::string shape_words(const std::vector<Index>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

StorageType storage_of(SafetensorsType type, const std::string& where) {
  switch (type) {
    case SafetensorsType::float16:
      return StorageType::float16;
    case SafetensorsType::bfloat16:
      return StorageType::bfloat16;
    case SafetensorsType::float32:
      return StorageType::float32;
    default:
      throw FormatError(fmt::format("{} holds whole numbers; store F16, BF16 or F32", where));
  }
}

/// The file with notes of what was used, so that misspelt names are found.
class Source {
 public:
  explicit Source(const std::filesystem::path& path) : file_(path) {}

  [[nodiscard]] const std::string& name() const { return file_.name(); }

  [[nodiscard]] bool has(const std::string& name) const { return file_.tensors().contains(name); }

  const SafetensorsTensor& tensor(const std::string& name) {
    const auto found = file_.tensors().find(name);
    require<FormatError>(found != file_.tensors().end(), "{}: tensor '{}' is missing", this->name(),
                         name);
    used_.insert(name);
    return found->second;
  }

  /// A text of __metadata__.
  std::string text(const std::string& name) {
    const auto found = file_.metadata().find(name);
    require<FormatError>(found != file_.metadata().end(),
                         "{}: __metadata__ has no '{}' (nothing is guessed); write it",
                         this->name(), name);
    used_.insert(name);
    return found->second;
  }

  std::string text_or_empty(const std::string& name) {
    return file_.metadata().contains(name) ? text(name) : "";
  }

  /// A number of __metadata__, the whole text.
  template <typename Number>
  Number number(const std::string& name) {
    const std::string found = text(name);
    Number value{};
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    require<FormatError>(error == std::errc{} && end == found.data() + found.size(),
                         "{}: __metadata__ '{}' is '{}', not a {}", this->name(), name, found,
                         std::is_integral_v<Number> ? "whole number" : "number");
    return value;
  }

  bool flag(const std::string& name) {
    const auto value = number<int>(name);
    require<FormatError>(value == 0 || value == 1, "{}: __metadata__ '{}' is {}; write 0 or 1",
                         this->name(), name, value);
    return value == 1;
  }

  void check_shape(const std::string& name, const std::vector<Index>& expected) {
    require<FormatError>(tensor(name).shape == expected,
                         "{}: tensor '{}' has shape {}, the attributes and other tensors say {}",
                         this->name(), name, shape_words(tensor(name).shape),
                         shape_words(expected));
  }

  /// Floats [first, first + n) of a tensor.
  std::vector<float> floats(const std::string& name, Index first, Index n) {
    const SafetensorsTensor& found = tensor(name);
    const StorageType storage = storage_of(found.type, where(name));
    std::vector<float> values(static_cast<std::size_t>(n));
    if (storage == StorageType::float32) {
      file_.read(found, first, std::as_writable_bytes(std::span(values)));
      return values;
    }
    std::vector<std::uint16_t> bits(values.size());
    file_.read(found, first, std::as_writable_bytes(std::span(bits)));
    if (storage == StorageType::float16) {
      widen_float16(bits, values);
    } else {
      widen_bfloat16(bits, values);
    }
    return values;
  }

  std::vector<float> all_floats(const std::string& name) {
    require<FormatError>(tensor(name).type == SafetensorsType::float32, "{} must be F32",
                         where(name));
    return floats(name, 0, n_elements(name));
  }

  /// All numbers of a tensor of whole numbers, each within the range of Number.
  template <typename Number>
  std::vector<Number> integers(const std::string& name) {
    const SafetensorsTensor& found = tensor(name);
    if (found.type == SafetensorsType::int32) {
      return checked<Number, std::int32_t>(name);
    }
    require<FormatError>(found.type == SafetensorsType::int64, "{} must be I32 or I64",
                         where(name));
    return checked<Number, std::int64_t>(name);
  }

  [[nodiscard]] std::string where(const std::string& name) const {
    return fmt::format("{}: tensor '{}'", this->name(), name);
  }

  /// Every tensor must have been used, and every attribute of a layer.
  void check_all_used() const {
    for (const auto& [name, tensor] : file_.tensors()) {
      require<FormatError>(used_.contains(name),
                           "{}: tensor '{}' is none of the capture format; check its name",
                           this->name(), name);
    }
    for (const auto& [name, text] : file_.metadata()) {
      require<FormatError>(!name.starts_with("layers.") || used_.contains(name),
                           "{}: __metadata__ '{}' is no attribute of the capture format; check "
                           "its name",
                           this->name(), name);
    }
  }

  /// Numbers LLL of the tensors layers.LLL.q, with their names as written.
  [[nodiscard]] std::map<Index, std::string> layers() const {
    std::map<Index, std::string> found;
    for (const auto& [name, tensor] : file_.tensors()) {
      constexpr std::string_view prefix = "layers.";
      if (!name.starts_with(prefix) || !name.ends_with(".q")) {
        continue;
      }
      const std::string digits = name.substr(prefix.size(), name.size() - prefix.size() - 2);
      Index number = -1;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), number);
      require<FormatError>(
          error == std::errc{} && end == digits.data() + digits.size() && number >= 0,
          "{}: '{}' is not a layer number", where(name), digits);
      require<FormatError>(found.emplace(number, prefix.data() + digits).second,
                           "{}: layer {} is there twice", this->name(), number);
    }
    require<FormatError>(!found.empty(), "{}: there is no tensor layers.LLL.q", this->name());
    return found;
  }

 private:
  Index n_elements(const std::string& name) {
    const SafetensorsTensor& found = tensor(name);
    return (found.end - found.begin) / size_of(found.type);
  }

  template <typename Number, typename Stored>
  std::vector<Number> checked(const std::string& name) {
    std::vector<Stored> stored(static_cast<std::size_t>(n_elements(name)));
    file_.read(tensor(name), 0, std::as_writable_bytes(std::span(stored)));
    std::vector<Number> numbers;
    for (const Stored value : stored) {
      require<FormatError>(std::in_range<Number>(value), "{} holds {}, which is out of range",
                           where(name), value);
      numbers.push_back(static_cast<Number>(value));
    }
    return numbers;
  }

  SafetensorsFile file_;
  std::set<std::string> used_;
};

CaptureInfo read_info(Source& source) {
  const auto expect = [&source](const std::string& name, std::string_view expected) {
    const std::string found = source.text(name);
    require<FormatError>(found == expected, "{}: __metadata__ '{}' is '{}' instead of '{}'",
                         source.name(), name, found, expected);
  };
  expect("format", capture_format);
  expect("format_version", std::to_string(capture_format_version));
  expect("stage", capture_stage);
  CaptureInfo info;
  for (const CaptureTextAttribute& row : capture_text_attributes()) {
    info.*row.member = source.text(std::string(row.name));
  }
  info.num_hidden_layers = source.number<std::int64_t>("num_hidden_layers");
  info.config_json = source.text_or_empty("config_json");
  info.prompt_text = source.text_or_empty("prompt_text");
  return info;
}

CaptureTokens read_tokens(Source& source) {
  CaptureTokens tokens;
  tokens.ids = source.integers<std::int32_t>("tokens.ids");
  const Index n_keys = std::ssize(tokens.ids);
  source.check_shape("tokens.ids", {n_keys});
  source.check_shape("tokens.positions", {n_keys});
  tokens.positions = source.integers<std::int32_t>("tokens.positions");
  if (source.has("tokens.offsets")) {
    source.check_shape("tokens.offsets", {n_keys, 2});
    tokens.offsets = source.integers<std::int64_t>("tokens.offsets");
  }
  return tokens;
}

void read_rules(Source& source, const std::string& prefix, CaptureLayer& layer) {
  AttentionRules& rules = layer.rules;
  rules.scale = source.number<double>(prefix + "softmax_scale");
  require<FormatError>(source.flag(prefix + "causal"),
                       "{}: __metadata__ '{}causal' is 0 and must be 1", source.name(), prefix);
  rules.q_offset = source.number<Index>(prefix + "q_offset");
  rules.sliding_window = source.number<Index>(prefix + "sliding_window");
  rules.attention_chunk = source.number<Index>(prefix + "attention_chunk");
  layer.logit_softcap = source.number<double>(prefix + "logit_softcap");
  layer.softcap_applied = source.flag(prefix + "softcap_applied");
  rules.softcap = layer.softcap_applied ? layer.logit_softcap : 0;
  if (source.flag(prefix + "has_sinks")) {
    rules.sinks = source.all_floats(prefix + "sinks");
  }
  const bool has_alibi = source.flag(prefix + "alibi");
  const bool is_scaled = source.flag(prefix + "alibi_scaled");
  if (has_alibi) {
    rules.alibi = is_scaled ? Alibi::scaled : Alibi::plain;
    rules.alibi_slopes = source.all_floats(prefix + "alibi_slopes");
  }
  layer.position_kind = source.text(prefix + "position_kind");
  layer.qk_norm = source.text(prefix + "qk_norm");
  layer.rope_json = source.text_or_empty(prefix + "rope_json");
  layer.out_kind = source.text(prefix + "out_kind");
  layer.kv_shared_from = source.number<Index>(prefix + "kv_shared_from");
  layer.v_equals_k_prefix = source.number<Index>(prefix + "v_equals_k_prefix");
}

CaptureLayer read_layer(Source& source, Index layer_idx, const std::string& prefix) {
  CaptureLayer layer;
  layer.layer_idx = source.number<Index>(prefix + "layer_index");
  require<FormatError>(layer.layer_idx == layer_idx, "{}: '{}layer_index' is {}, the name says {}",
                       source.name(), prefix, layer.layer_idx, layer_idx);
  for (const char* name : {"q", "k"}) {
    require<FormatError>(source.tensor(prefix + name).shape.size() == 3,
                         "{} has shape {} instead of three axes, [heads, rows, columns]",
                         source.where(prefix + name),
                         shape_words(source.tensor(prefix + name).shape));
  }
  layer.shape = {
      source.number<Index>(prefix + "n_q_heads"),  source.number<Index>(prefix + "n_kv_heads"),
      source.tensor(prefix + "q").shape[1],        source.tensor(prefix + "k").shape[1],
      source.number<Index>(prefix + "k_head_dim"), source.number<Index>(prefix + "v_head_dim")};
  read_rules(source, prefix, layer);
  layer.storage = storage_of(source.tensor(prefix + "q").type, source.where(prefix + "q"));
  layer.has_out = source.has(prefix + "out");
  layer.has_lse = source.has(prefix + "lse");
  if (layer.has_out) {
    layer.out_storage =
        storage_of(source.tensor(prefix + "out").type, source.where(prefix + "out"));
  }
  return layer;
}

void copy_tensor(Source& source, const std::string& name, const CaptureLayer& layer, Tensor tensor,
                 CaptureWriter& writer) {
  const Index rows = n_rows(layer.shape, tensor);
  const Index columns = n_columns(layer.shape, tensor);
  source.check_shape(name, {n_heads(layer.shape, tensor), rows, columns});
  require<FormatError>(
      tensor == Tensor::out ||
          storage_of(source.tensor(name).type, source.where(name)) == layer.storage,
      "{} has another number format than q; store q, k and v alike", source.where(name));
  for (Index head = 0; head < n_heads(layer.shape, tensor); ++head) {
    for (Index begin = 0; begin < rows; begin += block_rows) {
      const IndexRange range{begin, std::min(rows, begin + block_rows)};
      const std::vector<float> values =
          source.floats(name, (head * rows + begin) * columns, range.size() * columns);
      writer.write_rows(tensor, head, range, ConstMatrixView(values.data(), range.size(), columns));
    }
  }
}

void copy_layer(Source& source, const std::string& prefix, const CaptureLayer& layer,
                CaptureWriter& writer) {
  writer.add_layer(layer);
  for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v, Tensor::out}) {
    if ((tensor != Tensor::v || layer.v_equals_k_prefix == 0) &&
        (tensor != Tensor::out || layer.has_out)) {
      copy_tensor(source, prefix + std::string(name_of(tensor)), layer, tensor, writer);
    }
  }
  if (layer.has_lse) {
    const Index n_tokens = layer.shape.n_tokens;
    source.check_shape(prefix + "lse", {layer.shape.n_q_heads, n_tokens});
    const std::vector<float> lse = source.all_floats(prefix + "lse");
    for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
      writer.write_lse(head, {0, n_tokens},
                       Eigen::Map<const Vector>(lse.data() + head * n_tokens, n_tokens));
    }
  }
}

std::vector<Annotation> read_annotations(Source& source) {
  if (!source.has("annotations.start")) {
    return {};
  }
  const auto starts = source.integers<std::int64_t>("annotations.start");
  const Index n = std::ssize(starts);
  for (const char* name : {"start", "end", "kind", "group"}) {
    source.check_shape(std::string("annotations.") + name, {n});
  }
  const auto ends = source.integers<std::int64_t>("annotations.end");
  const auto kinds = source.integers<std::uint8_t>("annotations.kind");
  const auto groups = source.integers<std::int32_t>("annotations.group");
  std::vector<Annotation> annotations;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    annotations.push_back(
        {{starts[i], ends[i]}, static_cast<AnnotationKind>(kinds[i]), groups[i], ""});
  }
  return annotations;
}

void write_capture(Source& source, const std::filesystem::path& path) {
  const CaptureInfo info = read_info(source);
  const CaptureTokens tokens = read_tokens(source);
  const std::vector<Annotation> annotations = read_annotations(source);
  std::vector<std::pair<std::string, CaptureLayer>> layers;
  for (const auto& [layer_idx, name] : source.layers()) {
    const std::string prefix = name + ".";
    layers.emplace_back(prefix, read_layer(source, layer_idx, prefix));
  }
  CaptureWriter writer(path, info, tokens);
  for (const auto& [prefix, layer] : layers) {
    copy_layer(source, prefix, layer, writer);
  }
  source.check_all_used();
  writer.write_annotations(annotations);
  writer.commit();
}

}  // namespace

void import_safetensors(const std::filesystem::path& from, const std::filesystem::path& path) {
  require<ConfigError>(!std::filesystem::exists(path),
                       "{} exists already (captures are never changed); choose another name",
                       path.string());
  Source source(from);
  const std::string claimed_hash = source.text("token_ids_sha256");
  write_capture(source, path);
  try {
    const CaptureReader reader(path);
    require<FormatError>(reader.info().token_ids_sha256 == claimed_hash,
                         "{}: __metadata__ token_ids_sha256 is {}, that of tokens.ids is {}; one "
                         "of them is of another prompt",
                         source.name(), claimed_hash, reader.info().token_ids_sha256);
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    throw;
  }
}

}  // namespace quoka
