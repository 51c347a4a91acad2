#include "quoka/results/results.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quoka/metrics/columns.hpp"

namespace quoka {
namespace {

Index first_head(const ResultsAxes& axes, Index column, CellPlace place) {
  const Index cell =
      (place.config * axes.n_captures() + place.capture) * axes.n_layers() + place.layer;
  return column * axes.n_values() + cell * axes.n_q_heads;
}

}  // namespace

const ConfigParameter* ResultsAxes::parameter(std::string_view name) const {
  const auto found = std::ranges::find(parameters, name, &ConfigParameter::name);
  return found == parameters.end() ? nullptr : &*found;
}

std::span<const float> Results::column(Index column) const {
  const auto size = static_cast<std::size_t>(axes.n_values());
  return std::span(values).subspan(static_cast<std::size_t>(column) * size, size);
}

float Results::value(Index column, CellPlace place, Index q_head) const {
  return values[static_cast<std::size_t>(first_head(axes, column, place) + q_head)];
}

std::span<float> Results::heads(Index column, CellPlace place) {
  return std::span(values).subspan(static_cast<std::size_t>(first_head(axes, column, place)),
                                   static_cast<std::size_t>(axes.n_q_heads));
}

bool Results::has_cell(CellPlace place) const {
  return !std::isnan(value(cell_column(CellCount::n_rows), place, 0));
}

Results empty_results(const SweepConstants& constants, ResultsAxes axes) {
  Results results;
  results.constants = constants;
  results.axes = std::move(axes);
  const Index n = std::ssize(cell_columns()) * results.axes.n_values();
  results.values.assign(static_cast<std::size_t>(n), std::numeric_limits<float>::quiet_NaN());
  return results;
}

}  // namespace quoka
