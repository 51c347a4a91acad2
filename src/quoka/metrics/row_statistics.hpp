#pragma once

#include <array>
#include <span>

#include "quoka/metrics/columns.hpp"

namespace quoka {

/// Rows above which quantiles use every k-th row (mean, worst and n_valid always use all).
constexpr Index max_exact_quantile_rows = 65536;

/// Reduces the values of one metric over rows to the statistics of RowStatistic, in that order.
///
/// NaN marks a row that is left out. Quantiles interpolate linearly at (n - 1) q of the sorted
/// values; the worst value is the smallest of a higher-is-better metric, else the largest. Without
/// any value all statistics are NaN and n_valid is 0.
///
/// Cost: O(n). Sums in float64 in a fixed order.
std::array<float, n_row_statistics> row_statistics(std::span<const float> values, Better better);

}  // namespace quoka
