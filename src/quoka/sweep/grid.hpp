#pragma once

#include <vector>

#include "quoka/selection/config.hpp"
#include "quoka/sweep/config.hpp"

namespace quoka {

/// Most grid points that make_grid accepts.
constexpr Index max_grid_points = 1'000'000;

/// The configurations of a sweep, each in its canonical form and once, in order of first
/// appearance.
///
/// product: every combination of the axes' values, the last axis varies fastest. one_at_a_time: the
/// first value of every axis, then each other value with the rest at their first.
///
/// Throws: ConfigError if values do not fit together, or the grid has more than max_grid_points.
std::vector<SelectorConfig> make_grid(const SweepConfig& config);

}  // namespace quoka
