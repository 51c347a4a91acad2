#include "quoka/sweep/runner.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <new>
#include <optional>

#include "quoka/core/error.hpp"
#include "quoka/results/provenance.hpp"
#include "quoka/sweep/estimate.hpp"
#include "quoka/sweep/layer_input.hpp"

namespace quoka {
namespace {

void check_stop(const std::atomic<bool>* stop) {
  require<Interrupted>(stop == nullptr || !stop->load(),
                       "interrupted; finished units are kept, run the same command to continue");
}

/// Runs the units in order, with the reader of the current capture kept open.
class Runner {
 public:
  Runner(const SweepPlan& plan, const PartStore& store, const RunnerOptions& options,
         Progress& progress)
      : plan_(plan), store_(store), options_(options), progress_(progress) {}

  void run(const Unit& unit) {
    check_stop(options_.stop);
    progress_.start_unit(unit_name(plan_, unit), unit_flops(plan_, unit));
    std::string reason;
    const std::optional<Part> part = compute(unit, reason);
    if (part) {
      const std::filesystem::path path = store_.save(*part);
      for (const std::string& id : unit.cell_ids) {
        outcome_.cells.emplace(id, path);
      }
      progress_.finish_unit(fmt::format("{} configurations", unit.configs.size()));
    } else {
      fail(unit, reason);
    }
  }

  [[nodiscard]] bool has_failed() const { return !outcome_.failures.empty(); }
  RunnerOutcome take_outcome() { return std::move(outcome_); }

 private:
  /// The finished part, or nothing and the reason.
  std::optional<Part> compute(const Unit& unit, std::string& reason) {
    try {
      return replay(unit);
    } catch (const Interrupted&) {
      throw;
    } catch (const Error& error) {
      reason = error.what();
    } catch (const std::bad_alloc&) {
      reason = "out of memory (--dry-run prints what a unit needs)";
    }
    return std::nullopt;
  }

  Part replay(const Unit& unit) {
    Part part{unit.id, plan_.hash, utc_now(), {}, unit.cell_ids, {}};
    const Index layer_idx = plan_.captures[unit.place.capture].layers[unit.place.layer].layer_idx;
    const auto on_progress = [this](double done) {
      check_stop(options_.stop);
      progress_.update(done);
    };
    part.cells =
        replay_layer(layer_input(reader(unit.place.capture), layer_idx), unit_configs(plan_, unit),
                     plan_.replay_settings(options_.n_threads), on_progress);
    part.finished_utc = utc_now();
    return part;
  }

  const CaptureReader& reader(std::size_t capture) {
    if (!reader_ || open_capture_ != capture) {
      reader_.emplace(plan_.captures[capture].path);
      open_capture_ = capture;
    }
    return *reader_;
  }

  void fail(const Unit& unit, const std::string& reason) {
    const PlanCapture& capture = plan_.captures[unit.place.capture];
    outcome_.failures.push_back(
        {unit.id, capture.stem, capture.layers[unit.place.layer].layer_idx, reason, unit.cell_ids});
    store_.save(outcome_.failures.back());
    progress_.finish_unit("failed");
    spdlog::error("{} failed: {}", unit_name(plan_, unit), reason);
  }

  const SweepPlan& plan_;
  const PartStore& store_;
  const RunnerOptions& options_;
  Progress& progress_;
  std::optional<CaptureReader> reader_;
  std::size_t open_capture_ = 0;
  RunnerOutcome outcome_;
};

}  // namespace

RunnerOutcome run_units(const SweepPlan& plan, const std::vector<Unit>& units,
                        const PartStore& store, const RunnerOptions& options) {
  double flops = 0;
  for (const Unit& unit : units) {
    flops += unit_flops(plan, unit);
  }
  Progress progress(options.progress, std::ssize(units), flops);
  Runner runner(plan, store, options, progress);
  for (const Unit& unit : units) {
    runner.run(unit);
    if (options.fail_fast && runner.has_failed()) {
      break;
    }
  }
  check_stop(options.stop);
  return runner.take_outcome();
}

}  // namespace quoka
