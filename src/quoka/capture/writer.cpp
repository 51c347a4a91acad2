#include "quoka/capture/writer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "quoka/capture/detail/root_reader.hpp"
#include "quoka/core/atomic_file.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/half.hpp"
#include "quoka/core/sha256.hpp"

namespace quoka {
namespace {

constexpr Index chunk_rows = 1024;
constexpr std::size_t label_bytes = 64;

ElementType element_type_of(StorageType storage) {
  switch (storage) {
    case StorageType::float16:
      return ElementType::float16;
    case StorageType::bfloat16:
      return ElementType::bfloat16;
    case StorageType::tagged_bfloat16:
      return ElementType::uint16;
    case StorageType::float32:
      return ElementType::float32;
  }
  return ElementType::other;
}

void write_bytes(const Hdf5Group& group, const std::string& name, const std::string& text) {
  if (!text.empty()) {
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    group.create_dataset(name, ElementType::uint8, {std::ssize(bytes)})
        .write(std::span<const std::uint8_t>(bytes));
  }
}

void write_tokens(const Hdf5Group& root, const CaptureTokens& tokens) {
  const Index n_keys = std::ssize(tokens.ids);
  require<ShapeError>(n_keys > 0 && std::ssize(tokens.positions) == n_keys &&
                          (tokens.offsets.empty() || std::ssize(tokens.offsets) == 2 * n_keys),
                      "{} token ids, {} positions and {} offsets do not fit together", n_keys,
                      tokens.positions.size(), tokens.offsets.size());
  const Hdf5Group group = root.create_group("tokens");
  group.create_dataset("ids", ElementType::int32, {n_keys})
      .write(std::span<const std::int32_t>(tokens.ids));
  group.create_dataset("positions", ElementType::int32, {n_keys})
      .write(std::span<const std::int32_t>(tokens.positions));
  if (!tokens.offsets.empty()) {
    group.create_dataset("offsets", ElementType::int64, {n_keys, 2})
        .write(std::span<const std::int64_t>(tokens.offsets));
  }
}

void write_layer_attributes(const Hdf5Group& group, const CaptureLayer& layer) {
  const AttentionRules& rules = layer.rules;
  const auto integer = [&](const char* name, Index value) {
    group.write_attribute<std::int64_t>(name, value);
  };
  const auto flag = [&](const char* name, bool value) {
    group.write_attribute<std::uint8_t>(name, value ? 1 : 0);
  };
  integer("layer_index", layer.layer_idx);
  integer("n_q_heads", layer.shape.n_q_heads);
  integer("n_kv_heads", layer.shape.n_kv_heads);
  integer("k_head_dim", layer.shape.k_head_dim);
  integer("v_head_dim", layer.shape.v_head_dim);
  group.write_attribute<double>("softmax_scale", rules.scale);
  flag("causal", true);
  integer("q_offset", rules.q_offset);
  integer("sliding_window", rules.sliding_window);
  integer("attention_chunk", rules.attention_chunk);
  group.write_attribute<double>("logit_softcap", layer.logit_softcap);
  flag("softcap_applied", layer.softcap_applied);
  flag("has_sinks", !rules.sinks.empty());
  flag("alibi", rules.alibi != Alibi::none);
  flag("alibi_scaled", rules.alibi == Alibi::scaled);
  group.write_text_attribute("position_kind", layer.position_kind);
  if (!layer.rope_json.empty()) {
    group.write_text_attribute("rope_json", layer.rope_json);
  }
  group.write_text_attribute("qk_norm", layer.qk_norm);
  integer("kv_shared_from", layer.kv_shared_from);
  integer("v_equals_k_prefix", layer.v_equals_k_prefix);
  group.write_text_attribute("out_kind", layer.out_kind);
}

void write_per_head(const Hdf5Group& group, const char* name, const std::vector<float>& values) {
  if (!values.empty()) {
    group.create_dataset(name, ElementType::float32, {std::ssize(values)})
        .write(std::span<const float>(values));
  }
}

void check_layer(const CaptureLayer& layer) {
  const AttentionShape& shape = layer.shape;
  const Index n_q_heads = shape.n_q_heads;
  require<ShapeError>(shape.n_kv_heads > 0 && n_q_heads > 0 && n_q_heads % shape.n_kv_heads == 0 &&
                          shape.n_tokens > 0 &&
                          shape.n_keys == layer.rules.q_offset + shape.n_tokens,
                      "layer {}: {} query heads, {} KV heads, {} rows of q from position {} and {} "
                      "rows of k do not "
                      "fit together",
                      layer.layer_idx, n_q_heads, shape.n_kv_heads, shape.n_tokens,
                      layer.rules.q_offset, shape.n_keys);
  const auto fits = [n_q_heads](const std::vector<float>& values, bool is_needed) {
    return values.empty() ? !is_needed : std::ssize(values) == n_q_heads;
  };
  require<ShapeError>(fits(layer.rules.sinks, false) &&
                          fits(layer.rules.alibi_slopes, layer.rules.alibi != Alibi::none),
                      "layer {}: {} sinks and {} ALiBi slopes for {} query heads", layer.layer_idx,
                      layer.rules.sinks.size(), layer.rules.alibi_slopes.size(), n_q_heads);
}

std::vector<std::uint16_t> narrowed(const Matrix& values, StorageType storage) {
  const std::span<const float> floats(values.data(), static_cast<std::size_t>(values.size()));
  std::vector<std::uint16_t> bits(floats.size());
  std::vector<float> rounded(floats.size());
  if (storage == StorageType::float16) {
    narrow_float16(floats, bits);
    widen_float16(bits, rounded);
  } else {
    narrow_bfloat16(floats, bits);
    widen_bfloat16(bits, rounded);
  }
  for (std::size_t i = 0; i < floats.size(); ++i) {
    require<ConfigError>(std::isfinite(rounded[i]) || !std::isfinite(floats[i]),
                         "value {} does not fit into {}; use a storage type with a larger range",
                         floats[i], name_of(storage));
  }
  return bits;
}

}  // namespace

// A dataset that is being filled.
struct CaptureWriter::OpenTensor {
  std::string name;
  Hdf5Dataset dataset;
  StorageType storage = StorageType::float32;
  Index n_written = 0;  ///< elements
};

CaptureWriter::CaptureWriter(const std::filesystem::path& path, CaptureInfo info,
                             const CaptureTokens& tokens)
    : path_(path),
      temporary_{temporary_path(path)},
      file_(Hdf5File::create_on_disk(temporary_.path)),
      info_(std::move(info)) {
  info_.token_ids_sha256 = capture_detail::token_hash(tokens.ids);
  const Hdf5Group root = file_.root();
  write_tokens(root, tokens);
  const Hdf5Group meta = root.create_group("meta");
  write_bytes(meta, "config_json", info_.config_json);
  write_bytes(meta, "prompt_text", info_.prompt_text);
  static_cast<void>(root.create_group("layers"));
}

CaptureWriter::~CaptureWriter() = default;

CaptureWriter::TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

void CaptureWriter::check_layer_complete() const {
  for (const OpenTensor& tensor : tensors_) {
    require<ShapeError>(tensor.n_written == tensor.dataset.n_elements(),
                        "{}: {} of {} elements were written; write every head and row once",
                        tensor.dataset.where(), tensor.n_written, tensor.dataset.n_elements());
  }
}

void CaptureWriter::add_layer(const CaptureLayer& layer) {
  check_layer_complete();
  check_layer(layer);
  const std::string dtype(name_of(layer.storage));
  require<ConfigError>(!layer_ || info_.storage_dtype == dtype,
                       "layer {} is to be stored as {}, the ones before as {}; use one type",
                       layer.layer_idx, dtype, info_.storage_dtype);
  info_.storage_dtype = dtype;
  layer_ = layer;
  const Hdf5Group group =
      file_.root().group("layers").create_group(fmt::format("{:03}", layer.layer_idx));
  write_layer_attributes(group, layer);
  write_per_head(group, "sinks", layer.rules.sinks);
  write_per_head(group, "alibi_slopes", layer.rules.alibi_slopes);
  create_tensors(group);
}

void CaptureWriter::create_tensors(const Hdf5Group& group) {
  tensors_.clear();
  DatasetOptions options;
  options.fletcher32 = true;
  for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v, Tensor::out}) {
    if ((tensor == Tensor::v && layer_->v_equals_k_prefix > 0) ||
        (tensor == Tensor::out && !layer_->has_out)) {
      continue;
    }
    const std::vector<Index> shape = {n_heads(layer_->shape, tensor), n_rows(layer_->shape, tensor),
                                      n_columns(layer_->shape, tensor)};
    options.chunk = {1, std::min(shape[1], chunk_rows), shape[2]};
    const std::string name(name_of(tensor));
    const StorageType storage =
        tensor == Tensor::out ? layer_->out_storage.value_or(layer_->storage) : layer_->storage;
    Hdf5Dataset dataset = group.create_dataset(name, element_type_of(storage), shape, options);
    if (storage == StorageType::tagged_bfloat16) {
      dataset.write_text_attribute("encoding", "bfloat16");
    }
    tensors_.push_back({name, std::move(dataset), storage});
  }
  if (layer_->has_lse) {
    const std::vector<Index> shape = {layer_->shape.n_q_heads, layer_->shape.n_tokens};
    options.chunk = {1, std::min(shape[1], chunk_rows)};
    tensors_.push_back({"lse", group.create_dataset("lse", ElementType::float32, shape, options),
                        StorageType::float32});
  }
}

CaptureWriter::OpenTensor& CaptureWriter::open_tensor(const std::string& name) {
  const auto found = std::ranges::find(tensors_, name, &OpenTensor::name);
  require<ShapeError>(found != tensors_.end(), "{}: no layer with a tensor '{}' was begun",
                      path_.string(), name);
  return *found;
}

void CaptureWriter::write_rows(Tensor tensor, Index head, IndexRange rows, const Matrix& values) {
  OpenTensor& open = open_tensor(std::string(name_of(tensor)));
  const Index n_columns = open.dataset.info().shape[2];
  require<ShapeError>(values.rows() == rows.size() && values.cols() == n_columns,
                      "{}: a block of {} x {} for rows [{}, {}) of {} columns",
                      open.dataset.where(), values.rows(), values.cols(), rows.begin, rows.end,
                      n_columns);
  const DatasetBlock block{{head, rows.begin, 0}, {1, rows.size(), n_columns}};
  if (open.storage == StorageType::float32) {
    const std::span<const float> floats(values.data(), static_cast<std::size_t>(values.size()));
    open.dataset.write_raw(block, std::as_bytes(floats));
  } else {
    const std::vector<std::uint16_t> bits = narrowed(values, open.storage);
    open.dataset.write_raw(block, std::as_bytes(std::span(bits)));
  }
  open.n_written += values.size();
}

void CaptureWriter::write_lse(Index head, IndexRange rows, const Vector& values) {
  OpenTensor& open = open_tensor("lse");
  const std::span<const float> floats(values.data(), static_cast<std::size_t>(values.size()));
  open.dataset.write_raw({{head, rows.begin}, {1, rows.size()}}, std::as_bytes(floats));
  open.n_written += values.size();
}

void CaptureWriter::write_annotations(std::span<const Annotation> annotations) {
  if (annotations.empty()) {
    return;
  }
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  std::vector<std::uint8_t> kinds;
  std::vector<std::int32_t> groups;
  std::vector<std::uint8_t> labels;
  for (const Annotation& annotation : annotations) {
    starts.push_back(annotation.tokens.begin);
    ends.push_back(annotation.tokens.end);
    kinds.push_back(static_cast<std::uint8_t>(annotation.kind));
    groups.push_back(annotation.group);
    std::string label = annotation.label;
    label.resize(label_bytes, '\0');
    labels.insert(labels.end(), label.begin(), label.end());
  }
  const Index n = std::ssize(annotations);
  const Hdf5Group group = file_.root().create_group("annotations");
  group.create_dataset("start", ElementType::int64, {n})
      .write(std::span<const std::int64_t>(starts));
  group.create_dataset("end", ElementType::int64, {n}).write(std::span<const std::int64_t>(ends));
  const Hdf5Dataset kind = group.create_dataset("kind", ElementType::uint8, {n});
  kind.write(std::span<const std::uint8_t>(kinds));
  kind.write_text_attribute("flag_meanings", "haystack needle question instruction answer");
  group.create_dataset("group", ElementType::int32, {n})
      .write(std::span<const std::int32_t>(groups));
  group.create_dataset("label", ElementType::uint8, {n, Index{label_bytes}})
      .write(std::span<const std::uint8_t>(labels));
}

void CaptureWriter::commit() {
  check_layer_complete();
  require<ShapeError>(layer_.has_value(), "{}: a capture needs at least one layer", path_.string());
  tensors_.clear();
  if (info_.capture_id.empty()) {
    const std::string identity = info_.model_id + "\n" + info_.model_revision + "\n" +
                                 info_.token_ids_sha256 + "\n" + info_.storage_dtype;
    info_.capture_id = sha256_hex(identity).substr(0, 16);
  }
  const Hdf5Group root = file_.root();
  root.write_text_attribute("format", capture_format);
  root.write_attribute<std::uint32_t>("format_version", capture_format_version);
  root.write_text_attribute("stage", capture_stage);
  for (const CaptureTextAttribute& row : capture_text_attributes()) {
    root.write_text_attribute(std::string(row.name), info_.*row.member);
  }
  root.write_attribute<std::int64_t>("num_hidden_layers", info_.num_hidden_layers);
  file_.close();
  publish_file(temporary_.path, path_);
}

}  // namespace quoka
