#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "quoka/results/results.hpp"
#include "quoka/sweep/plan.hpp"
#include "quoka/sweep/records.hpp"

namespace quoka {

/// A results file that belongs to a plan.
struct ExistingOutput {
  Results results;
  std::unordered_map<std::string, CellPlace> cells;  ///< computed cells by cell id
  std::vector<FailureRecord> failures;  ///< units that it says failed, with their cells
};

/// Reads the results file at path, if there is one, and finds its cells in the plan.
///
/// Throws: ConfigError if it is not from this sweep (not a results file, other constants, or a
/// capture,
///         layer or configuration that the plan lacks), naming a difference.
std::optional<ExistingOutput> read_output(const std::filesystem::path& path, const SweepPlan& plan);

}  // namespace quoka
