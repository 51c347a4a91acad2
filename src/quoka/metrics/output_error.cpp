#include "quoka/metrics/output_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quoka {
namespace {

/// Sums over the channels of one vector of lanes.
struct LaneErrorSums {
  Lane error_square = Lane::Zero();
  Lane sparse_square = Lane::Zero();
  Lane dense_square = Lane::Zero();
  Lane product = Lane::Zero();
  Lane max_abs = Lane::Zero();
};

LaneErrorSums sum_over_channels(const float* numerators, const float* factors, const float* dense,
                                Index n_channels, Index stride) {
  LaneErrorSums sums;
  const Lane factor = Eigen::Map<const Lane>(factors);
  for (Index c = 0; c < n_channels; ++c) {
    const Lane s = Eigen::Map<const Lane>(numerators + c * stride) * factor;
    const Lane d = Eigen::Map<const Lane>(dense + c * stride);
    const Lane difference = s - d;
    sums.error_square += difference * difference;
    sums.sparse_square += s * s;
    sums.dense_square += d * d;
    sums.product += s * d;
    sums.max_abs = sums.max_abs.max(difference.abs());
  }
  return sums;
}

/// False if a sum of squares may have over- or underflowed in float32 on the way.
bool is_safe(const LaneErrorSums& sums, Index lane) {
  constexpr float low = 1e-20F;
  constexpr float high = 1e30F;
  const auto in_range = [](float x) { return x == 0 || (x > low && x < high); };
  return in_range(sums.sparse_square[lane]) && sums.dense_square[lane] > low &&
         sums.dense_square[lane] < high && in_range(sums.error_square[lane]) &&
         std::isfinite(sums.product[lane]);
}

OutputError error_of(double error_square, double sparse_square, double dense_square, double product,
                     float max_abs) {
  const double sparse_norm = std::sqrt(sparse_square);
  const double dense_norm = std::sqrt(dense_square);
  const bool has_cosine = sparse_norm >= smallest_denominator && dense_norm >= smallest_denominator;
  return {ratio_or_nan(std::sqrt(error_square), dense_norm),
          has_cosine ? ratio_or_nan(product, sparse_norm * dense_norm)
                     : std::numeric_limits<float>::quiet_NaN(),
          max_abs};
}

}  // namespace

float ratio_or_nan(double part, double whole) {
  return whole < smallest_denominator ? std::numeric_limits<float>::quiet_NaN()
                                      : static_cast<float>(part / whole);
}

OutputError output_error(const Eigen::Ref<const Vector>& sparse,
                         const Eigen::Ref<const Vector>& dense) {
  const VectorD s = sparse.cast<double>();
  const VectorD d = dense.cast<double>();
  const VectorD difference = s - d;
  return error_of(difference.squaredNorm(), s.squaredNorm(), d.squaredNorm(), s.dot(d),
                  static_cast<float>(difference.lpNorm<Eigen::Infinity>()));
}

OutputErrors output_errors(const Matrix& numerators, const LaneArray& factors, const Matrix& dense,
                           Index n_lanes) {
  const Index stride = dense.cols();
  OutputErrors errors{LaneArray(stride), LaneArray(stride), LaneArray(stride)};
  for (Index begin = 0; begin < n_lanes; begin += lane_width) {
    const LaneErrorSums sums = sum_over_channels(numerators.data() + begin, factors.data() + begin,
                                                 dense.data() + begin, dense.rows(), stride);
    for (Index lane = begin; lane < std::min(begin + lane_width, n_lanes); ++lane) {
      const Index l = lane - begin;
      const OutputError error =
          is_safe(sums, l) ? error_of(static_cast<double>(sums.error_square[l]),
                                      static_cast<double>(sums.sparse_square[l]),
                                      static_cast<double>(sums.dense_square[l]),
                                      static_cast<double>(sums.product[l]), sums.max_abs[l])
                           : output_error(numerators.col(lane) * factors[lane], dense.col(lane));
      errors.rel_l2[lane] = error.rel_l2;
      errors.cosine[lane] = error.cosine;
      errors.max_abs[lane] = error.max_abs;
    }
  }
  return errors;
}

}  // namespace quoka
