#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "quoka/replay/replay.hpp"

namespace quoka {

/// The finished cells of one unit. On disk: an HDF5 file followed by one line with the SHA-256 of
/// all bytes before it, so that damage is noticed before HDF5 sees the file. Internal to the sweep;
/// the results file is the interface.
struct Part {
  std::string unit_id;
  std::string plan_hash;
  std::string started_utc;
  std::string finished_utc;
  std::vector<std::string> cell_ids;
  std::vector<CellResult> cells;  ///< one per id
};

/// The bytes of a part file. Equal cells give equal values, not equal bytes (times differ).
std::string encode_part(const Part& part);

/// Reads only the identities of the cells. Throws: FormatError if the file is damaged or of another
/// version; IoError if it cannot be read.
std::vector<std::string> read_part_ids(const std::filesystem::path& path);

/// Reads the whole part. Throws as read_part_ids.
Part read_part(const std::filesystem::path& path);

}  // namespace quoka
