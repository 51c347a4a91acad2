#include "quoka/capture/detail/root_reader.hpp"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "quoka/core/error.hpp"
#include "quoka/core/sha256.hpp"

namespace quoka::capture_detail {
namespace {

constexpr Index max_text_bytes = Index{64} << 20;  // config and prompt: far above any real one
constexpr Index max_annotations = 1'000'000;
constexpr Index label_bytes = 64;  // by the format
constexpr std::uint8_t n_annotation_kinds = 5;

std::string read_bytes_as_text(const Hdf5Group& group, const std::string& name) {
  if (!group.contains(name)) {
    return {};
  }
  DatasetLimits limits;
  limits.max_bytes = max_text_bytes;
  limits.allow_empty = true;
  const auto bytes = group.dataset(name, limits).read<std::uint8_t>();
  return {bytes.begin(), bytes.end()};
}

void check_length(const Hdf5Dataset& column, const std::vector<Index>& expected) {
  require<FormatError>(column.info().shape == expected, "{} has shape {} instead of {}",
                       column.where(), shape_text(column.info().shape), shape_text(expected));
}

std::string label_at(const std::vector<std::uint8_t>& labels, std::size_t row) {
  if (labels.empty()) {
    return {};
  }
  const auto begin = labels.begin() + static_cast<std::ptrdiff_t>(row) * label_bytes;
  const auto end = std::find(begin, begin + label_bytes, std::uint8_t{0});
  return {begin, end};
}

}  // namespace

std::string token_hash(const std::vector<std::int32_t>& ids) {
  static_assert(std::endian::native == std::endian::little);
  return sha256_hex({reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(std::int32_t)});
}

CaptureInfo read_info(const Hdf5Group& root) {
  const auto format = root.attribute<std::string>("format");
  require<FormatError>(format == capture_format,
                       "{}: format is '{}' instead of '{}'; give the path of a capture",
                       root.where(), format, capture_format);
  const auto version = root.attribute<std::uint32_t>("format_version");
  require<FormatError>(
      version == capture_format_version,
      "{}: format_version is {}, this program reads {}; use a program that fits the "
      "file, or make the capture again",
      root.where(), version, capture_format_version);
  const auto stage = root.attribute<std::string>("stage");
  require<FormatError>(stage == capture_stage,
                       "{}: stage is '{}' instead of '{}' (the replay does no normalisation and no "
                       "rotation of its own); capture q, k and v at that stage",
                       root.where(), stage, capture_stage);
  CaptureInfo info;
  for (const CaptureTextAttribute& row : capture_text_attributes()) {
    info.*row.member = root.attribute<std::string>(std::string(row.name));
  }
  info.num_hidden_layers = root.attribute<std::int64_t>("num_hidden_layers");
  if (root.contains("meta")) {
    const Hdf5Group meta = root.group("meta");
    info.config_json = read_bytes_as_text(meta, "config_json");
    info.prompt_text = read_bytes_as_text(meta, "prompt_text");
  }
  return info;
}

CaptureTokens read_tokens(const Hdf5Group& root, const CaptureInfo& info) {
  const Hdf5Group group = root.group("tokens");
  CaptureTokens tokens;
  const Hdf5Dataset ids = group.dataset("ids");
  require<FormatError>(ids.info().shape.size() == 1, "{} has {} axes instead of 1", ids.where(),
                       ids.info().shape.size());
  tokens.ids = ids.read<std::int32_t>();
  const std::string hash = token_hash(tokens.ids);
  require<FormatError>(
      hash == info.token_ids_sha256,
      "{} has the SHA-256 {}, the attribute token_ids_sha256 says {}; one of them is "
      "of another prompt",
      ids.where(), hash, info.token_ids_sha256);
  const Hdf5Dataset positions = group.dataset("positions");
  check_length(positions, ids.info().shape);
  tokens.positions = positions.read<std::int32_t>();
  if (group.contains("offsets")) {
    const Hdf5Dataset offsets = group.dataset("offsets");
    check_length(offsets, {ids.n_elements(), 2});
    tokens.offsets = offsets.read<std::int64_t>();
  }
  return tokens;
}

std::vector<Annotation> read_annotations(const Hdf5Group& root, Index n_keys) {
  if (!root.contains("annotations")) {
    return {};
  }
  const Hdf5Group group = root.group("annotations");
  DatasetLimits limits;
  limits.max_dim = max_annotations;
  limits.allow_empty = true;
  const Hdf5Dataset start = group.dataset("start", limits);
  const std::vector<Index> shape = {start.n_elements()};
  const auto open = [&](const char* name) {
    Hdf5Dataset column = group.dataset(name, limits);
    check_length(column, shape);
    return column;
  };
  const auto starts = open("start").read<std::int64_t>();
  const auto ends = open("end").read<std::int64_t>();
  const auto kinds = open("kind").read<std::uint8_t>();
  const auto groups = open("group").read<std::int32_t>();
  std::vector<std::uint8_t> labels;
  if (group.contains("label")) {
    const Hdf5Dataset label = group.dataset("label", limits);
    check_length(label, {shape[0], label_bytes});
    labels = label.read<std::uint8_t>();
  }
  std::vector<Annotation> annotations;
  for (std::size_t row = 0; row < starts.size(); ++row) {
    require<FormatError>(
        starts[row] >= 0 && starts[row] < ends[row] && ends[row] <= n_keys,
        "{}: annotation {} covers [{}, {}), which is not a range within the {} tokens; "
        "write half-open ranges of absolute positions",
        group.where(), row, starts[row], ends[row], n_keys);
    require<FormatError>(
        kinds[row] < n_annotation_kinds,
        "{}: annotation {} has kind {}; known are 0 haystack, 1 needle, 2 question, 3 "
        "instruction, 4 answer",
        group.where(), row, kinds[row]);
    annotations.push_back({{starts[row], ends[row]},
                           static_cast<AnnotationKind>(kinds[row]),
                           groups[row],
                           label_at(labels, row)});
  }
  return annotations;
}

}  // namespace quoka::capture_detail
