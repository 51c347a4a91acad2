#include "quoka/capture/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "quoka/capture/detail/json.hpp"
#include "quoka/core/error.hpp"

namespace quoka {
namespace {

using capture_detail::JsonValue;

constexpr Index length_bytes = 8;
constexpr std::uint64_t format_max_header = 100'000'000;  // of the format
constexpr std::size_t max_rank = 4;
constexpr std::uint64_t max_dim = std::uint64_t{1} << 31;

struct TypeRow {
  std::string_view name;
  SafetensorsType type;
  Index size;
};

// In the order of the enumerators.
constexpr std::array<TypeRow, 5> type_rows = {{{"F16", SafetensorsType::float16, 2},
                                               {"BF16", SafetensorsType::bfloat16, 2},
                                               {"F32", SafetensorsType::float32, 4},
                                               {"I32", SafetensorsType::int32, 4},
                                               {"I64", SafetensorsType::int64, 8}}};

/// The three members of a tensor's entry, nothing else.
struct Entry {
  const JsonValue* dtype = nullptr;
  const JsonValue* shape = nullptr;
  const JsonValue* offsets = nullptr;
};

Entry entry_of(const std::string& where, const JsonValue& value) {
  const auto* object = value.get<JsonValue::Object>();
  Entry entry{value.find("dtype"), value.find("shape"), value.find("data_offsets")};
  require<FormatError>(object != nullptr && object->size() == 3 && entry.dtype != nullptr &&
                           entry.shape != nullptr && entry.offsets != nullptr,
                       "{} is not described by exactly dtype, shape and data_offsets", where);
  return entry;
}

SafetensorsType read_type(const std::string& where, const JsonValue& value) {
  const auto* name = value.get<std::string>();
  require<FormatError>(name != nullptr, "{}: dtype is not a text", where);
  const auto found = std::ranges::find(type_rows, *name, &TypeRow::name);
  require<FormatError>(found != type_rows.end(),
                       "{}: dtype '{}' is not accepted; store F16, BF16, F32, I32 or I64", where,
                       *name);
  return found->type;
}

std::vector<std::uint64_t> read_integers(const std::string& where, std::string_view what,
                                         const JsonValue& value) {
  const auto* array = value.get<JsonValue::Array>();
  require<FormatError>(array != nullptr, "{}: {} is not a list", where, what);
  std::vector<std::uint64_t> numbers;
  for (const JsonValue& element : *array) {
    const auto* number = element.get<std::uint64_t>();
    require<FormatError>(number != nullptr, "{}: {} holds something else than whole numbers >= 0",
                         where, what);
    numbers.push_back(*number);
  }
  return numbers;
}

/// Bytes of the elements; the product is checked step by step.
std::uint64_t read_shape(const std::string& where, const JsonValue& value,
                         SafetensorsTensor& tensor) {
  const auto extents = read_integers(where, "shape", value);
  require<FormatError>(extents.size() <= max_rank, "{}: shape has {} axes, more than {}", where,
                       extents.size(), max_rank);
  std::uint64_t bytes = static_cast<std::uint64_t>(size_of(tensor.type));
  for (const std::uint64_t extent : extents) {
    require<FormatError>(extent <= max_dim, "{}: shape has an extent of {}, more than {}", where,
                         extent, max_dim);
    require<FormatError>(!__builtin_mul_overflow(bytes, extent, &bytes),
                         "{}: the product of its shape does not fit into 64 bits", where);
    tensor.shape.push_back(static_cast<Index>(extent));
  }
  return bytes;
}

SafetensorsTensor read_tensor(const std::string& where, const JsonValue& value,
                              std::uint64_t data_bytes) {
  const Entry entry = entry_of(where, value);
  SafetensorsTensor tensor;
  tensor.type = read_type(where, *entry.dtype);
  const std::uint64_t bytes = read_shape(where, *entry.shape, tensor);
  const auto offsets = read_integers(where, "data_offsets", *entry.offsets);
  require<FormatError>(offsets.size() == 2, "{}: data_offsets has {} numbers instead of 2", where,
                       offsets.size());
  require<FormatError>(offsets[0] <= offsets[1] && offsets[1] <= data_bytes,
                       "{}: data_offsets [{}, {}] do not lie in the {} bytes of data; the file is "
                       "cut off or damaged",
                       where, offsets[0], offsets[1], data_bytes);
  require<FormatError>(offsets[1] - offsets[0] == bytes,
                       "{}: its shape needs {} bytes, data_offsets give {}", where, bytes,
                       offsets[1] - offsets[0]);
  tensor.begin = static_cast<Index>(offsets[0]);
  tensor.end = static_cast<Index>(offsets[1]);
  return tensor;
}

std::map<std::string, std::string> read_metadata(const std::string& where, const JsonValue& value) {
  const auto* object = value.get<JsonValue::Object>();
  require<FormatError>(object != nullptr, "{}: __metadata__ is not an object", where);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, member] : *object) {
    const auto* text = member.get<std::string>();
    require<FormatError>(text != nullptr, "{}: __metadata__ '{}' is not a text", where, key);
    metadata.emplace(key, *text);
  }
  return metadata;
}

// Sorted by place, each tensor begins where the one before ends, and the last at the file's end.
void check_places(const std::string& where, const std::map<std::string, SafetensorsTensor>& tensors,
                  std::uint64_t data_bytes) {
  std::vector<std::pair<std::pair<Index, Index>, std::string_view>> places;
  for (const auto& [name, tensor] : tensors) {
    places.push_back({{tensor.begin, tensor.end}, name});
  }
  std::ranges::sort(places);
  Index end = 0;
  for (const auto& [place, name] : places) {
    require<FormatError>(place.first == end,
                         "{}: tensor '{}' begins at byte {} of the data, the one before ends at {} "
                         "(tensors may not overlap or leave holes)",
                         where, name, place.first, end);
    end = place.second;
  }
  require<FormatError>(std::cmp_equal(end, data_bytes),
                       "{}: the tensors end at byte {} of the data, the file at {}", where, end,
                       data_bytes);
}

std::string read_header(const std::string& where, std::ifstream& file, std::uint64_t file_bytes,
                        const SafetensorsLimits& limits) {
  require<FormatError>(file_bytes >= length_bytes,
                       "{} has {} bytes, a safetensors file at least {}", where, file_bytes,
                       length_bytes);
  std::array<char, length_bytes> prefix{};
  file.read(prefix.data(), length_bytes);
  static_assert(std::endian::native == std::endian::little);
  const auto length = std::bit_cast<std::uint64_t>(prefix);
  require<FormatError>(
      length <= format_max_header && std::cmp_less_equal(length, limits.max_header_bytes),
      "{}: the header has {} bytes, more than {}; is it a safetensors file?", where, length,
      limits.max_header_bytes);
  require<FormatError>(length <= file_bytes - length_bytes,
                       "{}: the header has {} bytes, the file only {}; it is cut off", where,
                       length, file_bytes);
  std::string header(length, '\0');
  file.read(header.data(), static_cast<std::streamsize>(length));
  require<FormatError>(file.good(), "{}: the header cannot be read", where);
  require<FormatError>(header.starts_with('{'), "{}: the header does not begin with an {{", where);
  require<FormatError>(header[header.find_last_not_of(' ')] == '}',
                       "{}: the header ends with something else than an }} and spaces", where);
  return header;
}

}  // namespace

Index size_of(SafetensorsType type) { return type_rows[static_cast<std::size_t>(type)].size; }

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path, const SafetensorsLimits& limits)
    : name_(path.string()) {
  std::error_code error;
  require<FormatError>(std::filesystem::is_regular_file(path, error),
                       "{} does not exist or is not a regular file; check the path", name_);
  file_.open(path, std::ios::binary);
  require<IoError>(file_.good(), "{} cannot be read; check its permissions", name_);
  const std::uint64_t file_bytes = std::filesystem::file_size(path);
  const std::string header = read_header(name_, file_, file_bytes, limits);
  data_begin_ = length_bytes + std::ssize(header);
  const std::uint64_t data_bytes = file_bytes - static_cast<std::uint64_t>(data_begin_);

  constexpr Index max_depth = 3;  // file, tensor, shape
  const JsonValue root = capture_detail::parse_json(name_ + ": the header", header,
                                                    {max_depth, 16 * limits.max_tensors});
  for (const auto& [key, value] : *root.get<JsonValue::Object>()) {
    if (key == "__metadata__") {
      metadata_ = read_metadata(name_, value);
      continue;
    }
    require<FormatError>(std::ssize(tensors_) < limits.max_tensors, "{} has more than {} tensors",
                         name_, limits.max_tensors);
    tensors_.emplace(key,
                     read_tensor(fmt::format("{}: tensor '{}'", name_, key), value, data_bytes));
  }
  check_places(name_, tensors_, data_bytes);
}

void SafetensorsFile::read(const SafetensorsTensor& tensor, Index first,
                           std::span<std::byte> bytes) {
  const Index begin = tensor.begin + first * size_of(tensor.type);
  QUOKA_ASSERT(begin >= tensor.begin && begin + std::ssize(bytes) <= tensor.end);
  file_.clear();
  file_.seekg(data_begin_ + begin);
  // The buffer need not be aligned in the file, and is not here: bytes are copied.
  file_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  require<FormatError>(file_.gcount() == static_cast<std::streamsize>(bytes.size()),
                       "{} ended while it was read (was it changed meanwhile?)", name_);
}

}  // namespace quoka
