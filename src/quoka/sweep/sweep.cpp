#include "quoka/sweep/sweep.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "quoka/core/atomic_file.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/parallel.hpp"
#include "quoka/results/writer.hpp"
#include "quoka/sweep/estimate.hpp"
#include "quoka/sweep/merge.hpp"
#include "quoka/sweep/part_store.hpp"

namespace quoka {
namespace {

using CellIds = std::unordered_set<std::string>;

/// What is there before a run.
struct State {
  SweepPlan plan;
  std::optional<ExistingOutput> output;
  PartIndex parts;
  std::vector<FailureRecord> failures;  ///< known ones, unless they are to be tried again
  std::vector<Unit> units;              ///< to do
  bool complete = false;                ///< the output holds all there is to know
};

CellIds all_cells(const SweepPlan& plan) {
  CellIds ids;
  for (const Unit& unit : missing_units(plan, {})) {
    ids.insert(unit.cell_ids.begin(), unit.cell_ids.end());
  }
  return ids;
}

/// The means per chunk and the kept keys are not read back from an output, so its cells count only
/// for a sweep without them.
bool reuses_output(const State& state) {
  const SweepConstants& constants = state.plan.constants;
  return state.output && !constants.by_chunk && !constants.selections;
}

CellIds failed_cells(const std::vector<FailureRecord>& failures) {
  CellIds ids;
  for (const FailureRecord& failure : failures) {
    ids.insert(failure.cell_ids.begin(), failure.cell_ids.end());
  }
  return ids;
}

/// True if the output holds every cell of the plan, or says that it failed.
bool is_complete(const State& state, const SweepOptions& options) {
  if (!state.output) {
    return false;
  }
  CellIds there;
  if (!options.retry_failed) {
    there = failed_cells(state.output->failures);
  }
  for (const auto& [id, place] : state.output->cells) {
    there.insert(id);
  }
  return missing_units(state.plan, there).empty();
}

/// Known failures, and the units that are neither done nor known to fail.
void find_work(const SweepOptions& options, State& state) {
  if (state.output && !options.retry_failed) {
    state.failures = state.output->failures;
  }
  if (!options.retry_failed) {
    state.failures.insert(state.failures.end(), state.parts.failures.begin(),
                          state.parts.failures.end());
  }
  CellIds skip = failed_cells(state.failures);
  for (const auto& [id, path] : state.parts.cells) {
    skip.insert(id);
  }
  if (reuses_output(state)) {
    for (const auto& [id, place] : state.output->cells) {
      skip.insert(id);
    }
  }
  state.units = missing_units(state.plan, skip);
}

void check_out_is_no_capture(const SweepConfig& config) {
  for (const std::string& capture : config.captures) {
    std::error_code missing;
    require<ConfigError>(!std::filesystem::equivalent(capture, config.out, missing),
                         "out {} is a capture of this sweep (it would be replaced); choose another "
                         "out",
                         config.out);
  }
}

State inspect(const SweepConfig& config, const SweepOptions& options) {
  State state;
  state.plan = make_plan(config);
  check_out_is_no_capture(config);
  if (!options.overwrite) {
    state.output = read_output(config.out, state.plan);
  }
  state.parts = PartStore(config.out).scan();
  for (const std::string& warning : state.parts.warnings) {
    spdlog::warn("{}", warning);
  }
  state.complete = is_complete(state, options);
  if (!state.complete) {
    find_work(options, state);
  }
  return state;
}

/// One entry per unit, for failures of cells that are in the plan and were not computed after all.
std::vector<FailedUnit> failed_units(const State& state, const CellIds& planned) {
  std::vector<FailedUnit> failed;
  for (const FailureRecord& failure : state.failures) {
    const bool counts = std::ranges::any_of(failure.cell_ids, [&](const std::string& id) {
      return planned.contains(id) && !state.parts.cells.contains(id);
    });
    const bool known = std::ranges::any_of(failed, [&](const FailedUnit& unit) {
      return unit.capture == failure.capture && unit.layer_idx == failure.layer_idx;
    });
    if (counts && !known) {
      failed.push_back({failure.capture, failure.layer_idx, failure.reason});
    }
  }
  return failed;
}

Results collect(const SweepConfig& config, const SweepOptions& options, const State& state) {
  Results results =
      merge(state.plan, state.parts.cells, reuses_output(state) ? &*state.output : nullptr);
  Provenance& provenance = results.provenance;
  provenance = local_provenance();
  provenance.config_text = to_toml(config);
  provenance.plan_hash = state.plan.hash;
  provenance.command_line = options.command_line;
  provenance.threads = options.runner.n_threads;
  for (const PlanCapture& capture : state.plan.captures) {
    provenance.units_total += std::ssize(capture.layers);
  }
  provenance.failed = failed_units(state, all_cells(state.plan));
  provenance.units_done = provenance.units_total - std::ssize(provenance.failed);
  return results;
}

}  // namespace

int thread_count(const SweepConfig& config) {
  return config.threads > 0 ? static_cast<int>(config.threads) : available_threads();
}

SweepOutcome run_sweep(const SweepConfig& config, const SweepOptions& options) {
  State state = inspect(config, options);
  for (const PlanCapture& capture : state.plan.captures) {
    if (capture.verdict != "passed") {
      spdlog::warn(
          "capture {}: {} (a replay is only as right as its capture); see quoka-capture verify",
          capture.path, capture.verdict);
    }
  }
  const PartStore store(config.out);
  SweepOutcome outcome;
  if (state.complete) {
    store.remove_merged(all_cells(state.plan));
    outcome.was_complete = true;
    outcome.results = std::move(state.output->results);
    outcome.failed = outcome.results->provenance.failed;
    return outcome;
  }
  store.prepare(state.plan);
  spdlog::debug("plan {}: {} configurations; {} cells in parts, {} in the output, {} units to do",
                state.plan.hash, state.plan.configs.size(), state.parts.cells.size(),
                reuses_output(state) ? state.output->cells.size() : 0, state.units.size());
  RunnerOutcome done = run_units(state.plan, state.units, store, options.runner);
  state.parts.cells.merge(done.cells);
  state.failures.insert(state.failures.end(), done.failures.begin(), done.failures.end());
  if (options.runner.fail_fast && !done.failures.empty()) {
    outcome.failed = failed_units(state, all_cells(state.plan));
    return outcome;
  }
  outcome.results = collect(config, options, state);
  outcome.failed = outcome.results->provenance.failed;
  write_file_atomically(config.out, results_image(*outcome.results));
  store.remove_merged(all_cells(state.plan));
  return outcome;
}

std::string dry_run(const SweepConfig& config, const SweepOptions& options) {
  const State state = inspect(config, options);
  return describe_work(state.plan, state.units, options.runner.n_threads);
}

}  // namespace quoka
