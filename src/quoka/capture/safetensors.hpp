#pragma once

/// Files in the safetensors format, read strictly: nothing of a file is used before all of its
/// header is known to be right. Knows nothing of captures.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// The number formats that are accepted: F16, BF16, F32, I32 and I64.
enum class SafetensorsType { float16, bfloat16, float32, int32, int64 };

struct SafetensorsTensor {
  SafetensorsType type = SafetensorsType::float32;
  std::vector<Index> shape;  ///< at most 4 extents
  Index begin = 0;           ///< bytes from the start of the data
  Index end = 0;
};

/// Bytes of one element.
Index size_of(SafetensorsType type);

struct SafetensorsLimits {
  Index max_header_bytes = Index{16} << 20;
  Index max_tensors = 100'000;
};

/// An open safetensors file.
class SafetensorsFile {
 public:
  /// Reads and checks the header: valid UTF-8 and JSON of exactly the format's form, no key twice,
  /// known number formats, shapes whose product fits their bytes, tensors that fill the data
  /// without overlap and without holes, and a file that ends where the last one does.
  ///
  /// Throws: FormatError naming file, tensor and both values; IoError if it may not be read.
  explicit SafetensorsFile(const std::filesystem::path& path, const SafetensorsLimits& limits = {});

  [[nodiscard]] const std::map<std::string, SafetensorsTensor>& tensors() const { return tensors_; }
  /// The texts of __metadata__.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Elements [first, first + n) of a tensor in C order, as they are stored. The file is read, not
  /// mapped: one that shrinks meanwhile is an error and no crash.
  ///
  /// Shapes:  bytes is filled with n * size_of(type) bytes.
  /// Throws: FormatError if the file ends too early.
  void read(const SafetensorsTensor& tensor, Index first, std::span<std::byte> bytes);

 private:
  std::string name_;
  std::ifstream file_;
  Index data_begin_ = 0;
  std::map<std::string, SafetensorsTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace quoka
