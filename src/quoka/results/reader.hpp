#pragma once

#include <filesystem>

#include "quoka/results/results.hpp"

namespace quoka {

/// Reads a results file: axes, metrics, provenance; by_chunk and selections are not read (their
/// flags in the constants are). sink_mass is repeated for every computed configuration.
///
/// Throws: FormatError if the file is missing, damaged, of another format, or of another format
///         version or metric version.
Results read_results(const std::filesystem::path& path);

}  // namespace quoka
