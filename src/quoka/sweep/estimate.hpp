#pragma once

#include <string>
#include <vector>

#include "quoka/sweep/plan.hpp"

namespace quoka {

/// Rate that the time estimate of a dry run assumes per thread. Ours: about half of what one core
/// of a 2020s server reaches in Eigen's float32 product.
constexpr double assumed_flops_per_second = 2e10;

/// Floating-point operations of a unit.
double unit_flops(const SweepPlan& plan, const Unit& unit);

/// What a dry run prints: configurations, units, memory, time.
std::string describe_work(const SweepPlan& plan, const std::vector<Unit>& units, int n_threads);

}  // namespace quoka
