#include "quoka/sweep/estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "quoka/metrics/columns.hpp"
#include "quoka/sweep/progress.hpp"

namespace quoka {
namespace {

const AttentionShape& shape_of(const SweepPlan& plan, const Unit& unit) {
  return plan.captures[unit.place.capture].layers[unit.place.layer].shape;
}

std::string size_text(double bytes) {
  constexpr double mebi = 1 << 20;
  constexpr double gibi = 1 << 30;
  return bytes < gibi ? fmt::format("{:.0f} MiB", std::ceil(bytes / mebi))
                      : fmt::format("{:.1f} GiB", bytes / gibi);
}

}  // namespace

double unit_flops(const SweepPlan& plan, const Unit& unit) {
  return replay_flops(shape_of(plan, unit), unit_configs(plan, unit));
}

std::string describe_work(const SweepPlan& plan, const std::vector<Unit>& units, int n_threads) {
  std::size_t n_layers = 0;
  for (const PlanCapture& capture : plan.captures) {
    n_layers += capture.layers.size();
  }
  std::size_t n_cells = 0;
  std::int64_t bytes = 0;
  double flops = 0;
  for (const Unit& unit : units) {
    n_cells += unit.configs.size();
    bytes = std::max(bytes, replay_bytes(shape_of(plan, unit), unit_configs(plan, unit),
                                         plan.replay_settings(n_threads)));
    flops += unit_flops(plan, unit);
  }
  const auto n_values = static_cast<double>(results_axes(plan).n_values());
  const auto n_columns = static_cast<double>(cell_columns().size());
  std::string text = fmt::format("configurations  {}\n", plan.configs.size());
  text += fmt::format("captures        {}\nlayers          {}\n", plan.captures.size(), n_layers);
  text += fmt::format("units to do     {} of {} (a unit is one layer of one capture)\n",
                      units.size(), n_layers);
  text += fmt::format("cells to do     {} of {}\n", n_cells, n_layers * plan.configs.size());
  text += fmt::format("memory          {} for the replay, {} for the results\n",
                      size_text(static_cast<double>(bytes)),
                      size_text(n_values * n_columns * sizeof(float)));
  text += fmt::format("operations      {:.3g}\n", flops);
  return text + fmt::format(
                    "time            about {} (assumes {:.0f} GFLOP/s per thread, {} "
                    "threads)\n",
                    duration_text(flops / (assumed_flops_per_second * n_threads)),
                    assumed_flops_per_second / 1e9, n_threads);
}

}  // namespace quoka
