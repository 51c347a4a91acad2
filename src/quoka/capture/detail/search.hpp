#pragma once

// Private to the capture room: the best value of one positive number.

#include <cmath>

namespace quoka::capture_detail {

// The argument in [lowest, highest] with the smallest cost: a grid in powers, then golden-section
// search around its best point. Exact to about 1e-7 if the cost has one valley per grid step.
template <typename Cost>
double best_positive(double lowest, double highest, const Cost& cost) {
  constexpr int n_grid = 32;
  constexpr int n_sections = 36;  // 0.618^36 = 3e-8 of a grid step
  const double step = (std::log(highest) - std::log(lowest)) / n_grid;
  int best = 0;
  double best_cost = cost(lowest);
  for (int i = 1; i <= n_grid; ++i) {
    const double found = cost(lowest * std::exp(step * i));
    if (found < best_cost) {
      best = i;
      best_cost = found;
    }
  }
  double begin = std::log(lowest) + step * (best - 1);
  double end = begin + 2 * step;
  const double golden = (std::sqrt(5.0) - 1) / 2;
  for (int i = 0; i < n_sections; ++i) {
    const double left = end - golden * (end - begin);
    const double right = begin + golden * (end - begin);
    if (cost(std::exp(left)) < cost(std::exp(right))) {
      end = right;
    } else {
      begin = left;
    }
  }
  return std::exp((begin + end) / 2);
}

}  // namespace quoka::capture_detail
