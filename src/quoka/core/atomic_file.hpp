#pragma once

#include <filesystem>
#include <string_view>

namespace quoka {

/// Makes path hold exactly these bytes, or leaves it as it was: writes a temporary file beside it,
/// fsync, rename, fsync of the directory. A reader sees the old or the new content, never a part,
/// also after a kill or a power loss. The temporary file is removed on failure.
///
/// Throws: IoError with path, cause and remedy, a full disk included.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// Name of the temporary file for path: ".<name>.<pid>.<random>.<counter>.tmp" in the same
/// directory.
std::filesystem::path temporary_path(const std::filesystem::path& path);

/// Flushes an existing temporary file to disk and renames it to path, then flushes the directory.
/// Throws: IoError; the temporary file is then removed.
void publish_file(const std::filesystem::path& temporary, const std::filesystem::path& path);

}  // namespace quoka
