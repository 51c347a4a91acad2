#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "quoka/sweep/part_store.hpp"
#include "quoka/sweep/plan.hpp"
#include "quoka/sweep/progress.hpp"

namespace quoka {

/// How units are run. None of this changes a result.
struct RunnerOptions {
  int n_threads = 1;
  bool fail_fast = false;  ///< stop after the first unit that fails
  ProgressStyle progress = ProgressStyle::none;
  const std::atomic<bool>* stop = nullptr;  ///< set from outside to interrupt
};

/// What came of the units.
struct RunnerOutcome {
  std::unordered_map<std::string, std::filesystem::path> cells;  ///< cell id to its part file
  std::vector<FailureRecord> failures;
};

/// Computes the units one after the other and saves each as a part. A unit whose replay throws an
/// Error is recorded as failed, and the next one starts.
///
/// Throws: Interrupted when stop is set (the unit at work leaves nothing); IoError if a part cannot
/// be
///         written.
RunnerOutcome run_units(const SweepPlan& plan, const std::vector<Unit>& units,
                        const PartStore& store, const RunnerOptions& options);

}  // namespace quoka
