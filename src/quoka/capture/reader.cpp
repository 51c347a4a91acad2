#include "quoka/capture/reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "quoka/capture/detail/layer_reader.hpp"
#include "quoka/capture/detail/root_reader.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/half.hpp"

namespace quoka {
namespace {

constexpr Index max_layers = 10'000;

Matrix read_block(const Hdf5Dataset& tensor, Index head, IndexRange rows) {
  const Index n_columns = tensor.info().shape[2];
  const DatasetBlock block{{head, rows.begin, 0}, {1, rows.size(), n_columns}};
  Matrix values(rows.size(), n_columns);
  const std::span<float> floats(values.data(), static_cast<std::size_t>(values.size()));
  if (tensor.info().type == ElementType::float32) {
    tensor.read_raw(block, std::as_writable_bytes(floats));
    return values;
  }
  // Raw bits, widened here: HDF5's own conversion is about 80 times slower.
  std::vector<std::uint16_t> bits(floats.size());
  tensor.read_raw(block, std::as_writable_bytes(std::span(bits)));
  if (tensor.info().type == ElementType::float16) {
    widen_float16(bits, floats);
  } else {
    widen_bfloat16(bits, floats);
  }
  return values;
}

void check_place(const std::string& where, Index head, IndexRange rows, const Hdf5Dataset& tensor) {
  const std::vector<Index>& shape = tensor.info().shape;
  require<ShapeError>(head >= 0 && head < shape[0], "{} has {} heads, none is number {}", where,
                      shape[0], head);
  require<ShapeError>(rows.begin >= 0 && rows.begin <= rows.end && rows.end <= shape[1],
                      "{} has {} rows, not [{}, {})", where, shape[1], rows.begin, rows.end);
}

void check_dtype(const Hdf5Dataset& tensor, const CaptureInfo& info) {
  const std::string_view found = name_of(capture_detail::storage_of(tensor));
  require<FormatError>(
      found == info.storage_dtype,
      "{} holds {}, the attribute storage_dtype of the file says '{}'; write what is "
      "stored",
      tensor.where(), found, info.storage_dtype);
}

}  // namespace

CaptureReader::CaptureReader(const std::filesystem::path& path, const CaptureLimits& limits)
    : path_(path), file_(Hdf5File::open_read_only(path)) {
  const Hdf5Group root = file_.root();
  info_ = capture_detail::read_info(root);
  tokens_ = capture_detail::read_tokens(root, info_);
  const Index n_keys = static_cast<Index>(tokens_.ids.size());
  const Hdf5Group group = root.group("layers");
  for (const std::string& name : group.children(max_layers)) {
    capture_detail::OpenLayer open = capture_detail::open_layer(group, name, limits);
    const std::string where = fmt::format("{}/{}", group.where(), name);
    require<FormatError>(open.layer.layer_idx < info_.num_hidden_layers,
                         "{}: layer {} does not exist, num_hidden_layers is {}; write the model's "
                         "number of layers",
                         where, open.layer.layer_idx, info_.num_hidden_layers);
    require<FormatError>(
        open.layer.shape.n_keys == n_keys,
        "{}: k has {} rows, /tokens/ids has {} (one key per token); store the whole "
        "sequence",
        where, open.layer.shape.n_keys, n_keys);
    for (auto& [tensor, dataset] : open.datasets) {
      if (tensor == "q" || tensor == "k" || tensor == "v") {
        check_dtype(dataset, info_);
      }
      const bool is_new =
          datasets_.emplace(std::pair(open.layer.layer_idx, tensor), std::move(dataset)).second;
      require<FormatError>(is_new, "{}: there is another group for layer {}; keep one", where,
                           open.layer.layer_idx);
    }
    layers_.push_back(std::move(open.layer));
  }
  require<FormatError>(!layers_.empty(), "{} has no layers; store at least one", group.where());
  std::ranges::sort(layers_, {}, &CaptureLayer::layer_idx);
  annotations_ = capture_detail::read_annotations(root, n_keys);
}

const CaptureLayer& CaptureReader::layer(Index layer_idx) const {
  const auto found = std::ranges::find(layers_, layer_idx, &CaptureLayer::layer_idx);
  if (found == layers_.end()) {
    std::vector<Index> existing;
    for (const CaptureLayer& layer : layers_) {
      existing.push_back(layer.layer_idx);
    }
    throw ConfigError(fmt::format("{} has no layer {}; use one of: {}", path_.string(), layer_idx,
                                  fmt::join(existing, ", ")));
  }
  return *found;
}

const Hdf5Dataset& CaptureReader::dataset(const CaptureLayer& layer,
                                          const std::string& name) const {
  const auto found = datasets_.find({layer.layer_idx, name});
  require<FormatError>(found != datasets_.end(),
                       "{}: layer {} has no '{}'; capture it again with it", path_.string(),
                       layer.layer_idx, name);
  return found->second;
}

Matrix CaptureReader::read_rows(Index layer_idx, Tensor tensor, Index head, IndexRange rows) const {
  const CaptureLayer& found = layer(layer_idx);
  const bool is_prefix = tensor == Tensor::v && found.v_equals_k_prefix > 0;
  const Hdf5Dataset& data = dataset(found, std::string(name_of(is_prefix ? Tensor::k : tensor)));
  check_place(data.where(), head, rows, data);
  Matrix values = read_block(data, head, rows);
  if (is_prefix) {
    return values.leftCols(found.v_equals_k_prefix);
  }
  return values;
}

Matrix CaptureReader::read_head_checked(Index layer_idx, Tensor tensor, Index head) const {
  const CaptureLayer& found = layer(layer_idx);
  Matrix values = read_rows(layer_idx, tensor, head, {0, n_rows(found.shape, tensor)});
  if (values.allFinite()) {
    return values;
  }
  const bool is_query = tensor == Tensor::q || tensor == Tensor::out;
  for (Index row = 0; row < values.rows(); ++row) {
    for (Index column = 0; column < values.cols(); ++column) {
      require<FormatError>(
          std::isfinite(values(row, column)),
          "{}: layer {}, {}, head {}, token {}: value {} in column {} (attention with it is "
          "undefined); make the capture again, or leave this layer out",
          path_.string(), layer_idx, name_of(tensor), head,
          row + (is_query ? found.rules.q_offset : 0), values(row, column), column);
    }
  }
  return values;
}

Vector CaptureReader::read_lse(Index layer_idx, Index head, IndexRange rows) const {
  const Hdf5Dataset& data = dataset(layer(layer_idx), "lse");
  check_place(data.where(), head, rows, data);
  Vector values(rows.size());
  const std::span<float> floats(values.data(), static_cast<std::size_t>(values.size()));
  data.read_raw({{head, rows.begin}, {1, rows.size()}}, std::as_writable_bytes(floats));
  return values;
}

}  // namespace quoka
