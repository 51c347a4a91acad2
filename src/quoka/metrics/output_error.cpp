#include "quoka/metrics/output_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quoka {
namespace {

/// Sums over the channels of two rows.
struct RowSums {
  double error_square = 0;
  double sparse_square = 0;
  double dense_square = 0;
  double product = 0;
  float max_abs = 0;

  /// False if float32 may have over- or underflowed on the way.
  [[nodiscard]] bool is_safe() const {
    constexpr double low = 1e-20;
    constexpr double high = 1e30;
    const auto in_range = [](double x) { return x == 0 || (x > low && x < high); };
    return in_range(sparse_square) && dense_square > low && dense_square < high &&
           in_range(error_square) && std::isfinite(product);
  }
};

/// One pass in float32 lanes: this runs for every row of every configuration.
RowSums sums_in_float32(const float* sparse, const float* dense, Index n_channels) {
  constexpr Index width = 16;
  using Lane = Eigen::Array<float, width, 1>;
  Lane error = Lane::Zero();
  Lane largest = Lane::Zero();
  Lane sparse_square = Lane::Zero();
  Lane dense_square = Lane::Zero();
  Lane product = Lane::Zero();
  Lane s = Lane::Zero();
  Lane d = Lane::Zero();
  for (Index c = 0; c < n_channels; c += width) {
    if (n_channels - c >= width) {
      s = Eigen::Map<const Lane>(sparse + c);
      d = Eigen::Map<const Lane>(dense + c);
    } else {
      s.setZero();
      d.setZero();
      std::copy(sparse + c, sparse + n_channels, s.data());
      std::copy(dense + c, dense + n_channels, d.data());
    }
    const Lane difference = s - d;
    error += difference * difference;
    largest = largest.max(difference.abs());
    sparse_square += s * s;
    dense_square += d * d;
    product += s * d;
  }
  return {static_cast<double>(error.sum()), static_cast<double>(sparse_square.sum()),
          static_cast<double>(dense_square.sum()), static_cast<double>(product.sum()),
          largest.maxCoeff()};
}

RowSums sums_in_float64(const float* sparse, const float* dense, Index n_channels) {
  RowSums sums;
  for (Index c = 0; c < n_channels; ++c) {
    const auto s = static_cast<double>(sparse[c]);
    const auto d = static_cast<double>(dense[c]);
    sums.error_square += (s - d) * (s - d);
    sums.sparse_square += s * s;
    sums.dense_square += d * d;
    sums.product += s * d;
    sums.max_abs = std::max(sums.max_abs, static_cast<float>(std::abs(s - d)));
  }
  return sums;
}

}  // namespace

float ratio_or_nan(double part, double whole) {
  return whole < smallest_denominator ? std::numeric_limits<float>::quiet_NaN()
                                      : static_cast<float>(part / whole);
}

OutputError output_error(const float* sparse, const float* dense, Index n_channels) {
  RowSums sums = sums_in_float32(sparse, dense, n_channels);
  if (!sums.is_safe()) {
    sums = sums_in_float64(sparse, dense, n_channels);
  }
  const double sparse_norm = std::sqrt(sums.sparse_square);
  const double dense_norm = std::sqrt(sums.dense_square);
  const bool has_cosine = sparse_norm >= smallest_denominator && dense_norm >= smallest_denominator;
  return {ratio_or_nan(std::sqrt(sums.error_square), dense_norm),
          has_cosine ? ratio_or_nan(sums.product, sparse_norm * dense_norm)
                     : std::numeric_limits<float>::quiet_NaN(),
          sums.max_abs};
}

}  // namespace quoka
