#include "quoka/study/score_tails.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quoka {
namespace {

double ratio(double numerator, double denominator) {
  return denominator > 0 ? numerator / denominator : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void DeviationStatistics::add(const Eigen::Ref<const VectorD, 0, Eigen::InnerStride<>>& scores) {
  if (scores.size() < 2) {
    return;
  }
  const double mean = scores.mean();
  double largest = 0;
  double positive = 0;
  for (const double score : scores) {
    const double deviation = score - mean;
    const double square = deviation * deviation;
    squares_ += square;
    cubes_ += square * deviation;
    fourths_ += square * square;
    largest = std::max(largest, deviation);
    positive += std::max(0.0, deviation);
    const Index bin =
        static_cast<Index>(std::lround(deviation / deviation_bin_width)) + n_deviation_bins / 2;
    counts_[std::clamp<Index>(bin, 0, n_deviation_bins - 1)] += 1;
  }
  n_ += static_cast<double>(scores.size());
  if (positive > 0) {
    top_share_sum_ += largest / positive;
    n_lists_ += 1;
  }
}

double DeviationStatistics::spread() const { return std::sqrt(ratio(squares_, n_)); }

double DeviationStatistics::skewness() const { return ratio(cubes_ / n_, std::pow(spread(), 3)); }

double DeviationStatistics::excess_kurtosis() const {
  return ratio(fourths_ / n_, std::pow(spread(), 4)) - 3;
}

double DeviationStatistics::top_share() const { return ratio(top_share_sum_, n_lists_); }

VectorD DeviationStatistics::histogram() const {
  return n_ > 0 ? VectorD(counts_ / n_)
                : VectorD::Constant(n_deviation_bins, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace quoka
