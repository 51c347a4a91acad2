#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace quoka {

/// SHA-256 of the bytes, as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

/// SHA-256 of a file's content, read in blocks. Cost: one pass over the file.
/// Throws: IoError if the file cannot be read.
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace quoka
