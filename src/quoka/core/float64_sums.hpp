#pragma once

/// Sums of float32 numbers in float64, in lanes of a fixed number: Eigen 3.4 does not turn float
/// into double in vectors, the compiler does in loops of constant length.

#include "quoka/core/lanes.hpp"

namespace quoka {

using LaneD = Eigen::Array<double, lane_width, 1>;

inline double dot_float64(const float* a, const float* b, Index n) {
  LaneD sums = LaneD::Zero();
  const Index n_full = n - n % lane_width;
  for (Index i = 0; i < n_full; i += lane_width) {
    for (Index l = 0; l < lane_width; ++l) {
      sums[l] += static_cast<double>(a[i + l]) * static_cast<double>(b[i + l]);
    }
  }
  for (Index i = n_full; i < n; ++i) {
    sums[i - n_full] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sums.sum();
}

inline double sum_float64(const float* a, Index n) {
  LaneD sums = LaneD::Zero();
  const Index n_full = n - n % lane_width;
  for (Index i = 0; i < n_full; i += lane_width) {
    for (Index l = 0; l < lane_width; ++l) {
      sums[l] += static_cast<double>(a[i + l]);
    }
  }
  for (Index i = n_full; i < n; ++i) {
    sums[i - n_full] += static_cast<double>(a[i]);
  }
  return sums.sum();
}

}  // namespace quoka
