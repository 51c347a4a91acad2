#pragma once

/// A whole sweep: plan, missing units, parts, merged results file. Everything above the replay and
/// below the command line.

#include <optional>
#include <string>
#include <vector>

#include "quoka/results/results.hpp"
#include "quoka/sweep/config.hpp"
#include "quoka/sweep/plan.hpp"
#include "quoka/sweep/runner.hpp"

namespace quoka {

struct SweepOptions {
  RunnerOptions runner;
  bool overwrite = false;     ///< replace an output of another sweep; its cells are not used
  bool retry_failed = false;  ///< compute units again that failed before
  std::string command_line;   ///< for the provenance
};

/// What a sweep left behind.
struct SweepOutcome {
  std::optional<Results> results;  ///< nothing if it stopped at a failure (fail_fast)
  std::vector<FailedUnit> failed;  ///< units without results, from earlier runs too
  bool was_complete = false;       ///< the output was there already and nothing was done
};

/// Threads that the configuration asks for: its number, or all that the process may use.
int thread_count(const SweepConfig& config);

/// Computes the missing cells and writes config.out. Running it again continues or changes nothing.
///
/// Nothing is written before captures, grid and an existing output have been checked.
/// Throws: ConfigError, FormatError, IoError, Interrupted.
SweepOutcome run_sweep(const SweepConfig& config, const SweepOptions& options);

/// What a run would do, as text; writes nothing.
std::string dry_run(const SweepConfig& config, const SweepOptions& options);

}  // namespace quoka
