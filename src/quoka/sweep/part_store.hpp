#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "quoka/sweep/part.hpp"
#include "quoka/sweep/records.hpp"

namespace quoka {

/// What a folder of parts holds.
struct PartIndex {
  std::unordered_map<std::string, std::filesystem::path> cells;  ///< cell id to its part file
  std::vector<FailureRecord> failures;
  std::vector<std::string> warnings;  ///< damaged files, which count as absent
};

/// The folder `<out>.parts` with the finished units of a sweep:
///
///   plan.json                 what is being computed
///   shards/ab/<unit>.h5       immutable; the final name exists only when the content is complete
///   shards/ab/<unit>.fail.json
///
/// Safe against a kill at any moment. Cells are found by their identity, so parts of another grid
/// are used as far as they fit.
class PartStore {
 public:
  explicit PartStore(const std::filesystem::path& out);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  /// Makes the folder, removes temporary files of processes of this machine that no longer run, and
  /// writes plan.json. Throws: IoError if the folder of the output cannot be written.
  void prepare(const SweepPlan& plan) const;

  /// Verifies the checksum of every part.
  [[nodiscard]] PartIndex scan() const;

  /// Writes a finished unit and forgets its failure. Returns the file. Throws: IoError.
  std::filesystem::path save(const Part& part) const;
  void save(const FailureRecord& failure) const;

  /// Removes parts and failure records whose cells are all in merged, and damaged ones, then the
  /// folder if no part is left.
  void remove_merged(const std::unordered_set<std::string>& merged) const;

 private:
  [[nodiscard]] std::filesystem::path file(const std::string& unit_id,
                                           const std::string& suffix) const;

  std::filesystem::path out_;
  std::filesystem::path folder_;
};

}  // namespace quoka
