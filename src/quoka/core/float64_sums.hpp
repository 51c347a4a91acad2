#pragma once

/// Sums of float32 numbers in float64, in lanes of a fixed number: Eigen 3.4 does not turn float
/// into double in vectors, the compiler does in loops of constant length.

#include "quoka/core/lanes.hpp"

namespace quoka {

/// Sum of term(i), a float64 number, over i in [0, n).
template <typename Term>
double sum_of_terms(Index n, const Term& term) {
  Eigen::Array<double, lane_width, 1> sums = Eigen::Array<double, lane_width, 1>::Zero();
  const Index n_full = n - n % lane_width;
  for (Index i = 0; i < n_full; i += lane_width) {
    for (Index l = 0; l < lane_width; ++l) {
      sums[l] += term(i + l);
    }
  }
  for (Index i = n_full; i < n; ++i) {
    sums[i - n_full] += term(i);
  }
  return sums.sum();
}

inline double sum_float64(const float* a, Index n) {
  return sum_of_terms(n, [a](Index i) { return static_cast<double>(a[i]); });
}

inline double dot_float64(const float* a, const float* b, Index n) {
  return sum_of_terms(
      n, [a, b](Index i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); });
}

}  // namespace quoka
