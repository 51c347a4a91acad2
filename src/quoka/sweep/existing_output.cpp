#include "quoka/sweep/existing_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "quoka/core/error.hpp"
#include "quoka/results/reader.hpp"

namespace quoka {
namespace {

namespace fs = std::filesystem;

template <typename Difference>
void require_same(bool same, const fs::path& path, const Difference& difference) {
  require<ConfigError>(same,
                       "output {} exists and is not from this sweep: {}; use another --out, or "
                       "--overwrite to replace it",
                       path.string(), difference);
}

Results read_existing(const fs::path& path) {
  try {
    return read_results(path);
  } catch (const FormatError& error) {
    require_same(false, path, error.what());
    throw;
  }
}

void check_constants(const fs::path& path, const SweepConstants& old_constants,
                     const SweepConstants& constants) {
  const auto check = [&](std::string_view name, Index old_value, Index value) {
    require_same(old_value == value, path,
                 fmt::format("its {} is {}, here it is {}", name, old_value, value));
  };
  check("sink_size", old_constants.sink_size, constants.sink_size);
  check("min_history", old_constants.min_history, constants.min_history);
  check("by_chunk", old_constants.by_chunk ? 1 : 0, constants.by_chunk ? 1 : 0);
  check("selections", old_constants.selections ? 1 : 0, constants.selections ? 1 : 0);
}

Index position(const std::vector<std::string>& list, const std::string& value) {
  return std::ranges::find(list, value) - list.begin();
}

/// Where a layer of an existing file is in the plan.
PlanPlace plan_place(const fs::path& path, const ResultsAxes& old_axes, CellPlace old_place,
                     const SweepPlan& plan) {
  const ResultsCapture& old_capture =
      old_axes.captures[static_cast<std::size_t>(old_place.capture)];
  const auto capture = std::ranges::find(plan.captures, old_capture.sha256, &PlanCapture::sha256);
  require_same(capture != plan.captures.end(), path,
               fmt::format("capture {} with SHA-256 {} is not in this sweep (or its content has "
                           "changed)",
                           old_capture.stem, old_capture.sha256));
  const Index layer_idx = old_axes.layers[static_cast<std::size_t>(old_place.layer)];
  const auto layer = std::ranges::find(capture->layers, layer_idx, &PlanLayer::layer_idx);
  require_same(
      layer != capture->layers.end(), path,
      fmt::format("layer {} of capture {} is not in this sweep", layer_idx, old_capture.stem));
  return {static_cast<std::size_t>(capture - plan.captures.begin()),
          static_cast<std::size_t>(layer - capture->layers.begin())};
}

/// Adds a cell that was not computed to the failure that its file records, if it does.
void note_failure(const Results& results, CellPlace place, const std::string& id,
                  std::vector<FailureRecord>& failures) {
  const std::string& stem = results.axes.captures[static_cast<std::size_t>(place.capture)].stem;
  const Index layer_idx = results.axes.layers[static_cast<std::size_t>(place.layer)];
  for (const FailedUnit& failed : results.provenance.failed) {
    if (failed.capture == stem && failed.layer_idx == layer_idx) {
      failures.push_back({"", stem, layer_idx, failed.reason, {id}});
    }
  }
}

}  // namespace

std::optional<ExistingOutput> read_output(const fs::path& path, const SweepPlan& plan) {
  if (!fs::is_regular_file(path)) {
    return std::nullopt;
  }
  ExistingOutput output{read_existing(path), {}, {}};
  const ResultsAxes& axes = output.results.axes;
  check_constants(path, output.results.constants, plan.constants);
  for (Index config = 0; config < axes.n_configs(); ++config) {
    const std::string& label = axes.config_ids[static_cast<std::size_t>(config)];
    const Index planned = position(plan.config_ids, label);
    require_same(planned < std::ssize(plan.config_ids), path,
                 fmt::format("its configuration {} is not in this grid", label));
    for (Index cell = 0; cell < axes.n_captures() * axes.n_layers(); ++cell) {
      const CellPlace place{config, cell / axes.n_layers(), cell % axes.n_layers()};
      if (axes.facts(place.capture, place.layer).present) {
        const PlanPlace at = plan_place(path, axes, place, plan);
        std::string id = cell_id(plan, at, static_cast<std::size_t>(planned));
        if (output.results.has_cell(place)) {
          output.cells.emplace(std::move(id), place);
        } else {
          note_failure(output.results, place, id, output.failures);
        }
      }
    }
  }
  return output;
}

}  // namespace quoka
