#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace quoka {

/// SHA-256 of bytes that come piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();  // not inline: Context is incomplete here
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::string_view bytes);
  /// 64 lower-case hexadecimal digits; to be called once, at the end.
  [[nodiscard]] std::string hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// SHA-256 of the bytes, as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

/// SHA-256 of a file's content, read in blocks. Cost: one pass over the file.
/// Throws: IoError if the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace quoka
