#pragma once

#include <span>
#include <vector>

namespace quoka {

/// Pearson's correlation of x and y: covariance / (standard deviations), in [-1, 1].
///
/// Edge cases: NaN for fewer than two values, or if x or y is constant. x and y have one size.
/// Cost: O(n), two passes in float64.
double pearson(std::span<const double> x, std::span<const double> y);

/// Ranks from 1; equal values share the average of their ranks. Cost: O(n log n).
std::vector<double> average_ranks(std::span<const double> values);

/// Spearman's correlation: Pearson's of the average ranks. Unchanged by any increasing map of x or
/// y. Edge cases: as pearson. Cost: O(n log n).
double spearman(std::span<const double> x, std::span<const double> y);

}  // namespace quoka
