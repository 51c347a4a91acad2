#pragma once

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Bins of a histogram of deviations: centres (bin - 50) * 0.02, the outermost take what is beyond.
constexpr Index n_deviation_bins = 101;
constexpr double deviation_bin_width = 0.02;

/// How scores spread around their mean along one axis (the queries or the heads).
class DeviationStatistics {
 public:
  /// One list of scores that share a mean: a key's scores over the queries, or over the heads.
  /// A single score has no deviation and is left out.
  void add(const Eigen::Ref<const VectorD, 0, Eigen::InnerStride<>>& scores);

  [[nodiscard]] double n_scores() const { return n_; }
  /// Root mean square of the deviations; NaN without any, like what follows.
  [[nodiscard]] double spread() const;
  /// Third moment over the second's power 1.5; positive: the tail is on the side of the maximum.
  [[nodiscard]] double skewness() const;
  /// Fourth moment over the second squared, minus 3: 0 for a normal distribution.
  [[nodiscard]] double excess_kurtosis() const;
  /// Mean over the lists of (largest deviation) / (sum of the positive ones): 1 if one score stands
  /// out alone; 0.28 for 16 normal scores.
  [[nodiscard]] double top_share() const;
  /// Share of the deviations in each bin.
  [[nodiscard]] VectorD histogram() const;

 private:
  double n_ = 0;
  double squares_ = 0;  ///< sum of deviation^2; likewise below
  double cubes_ = 0;
  double fourths_ = 0;
  double top_share_sum_ = 0;
  double n_lists_ = 0;
  VectorD counts_ = VectorD::Zero(n_deviation_bins);
};

}  // namespace quoka
