#include "quoka/metrics/output_error.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quoka {
namespace {

constexpr Index lane_width = 8;
using Lane = Eigen::Array<double, lane_width, 1>;

/// Up to lane_width channels, filled up with zeros.
inline Lane load_lane(const float* channels, Index n_left) {
  using FloatLane = Eigen::Array<float, lane_width, 1>;
  if (n_left >= lane_width) {
    return Eigen::Map<const FloatLane>(channels).cast<double>();
  }
  FloatLane lane = FloatLane::Zero();
  std::copy(channels, channels + n_left, lane.data());
  return lane.cast<double>();
}

}  // namespace

float ratio_or_nan(double part, double whole) {
  return whole < smallest_denominator ? std::numeric_limits<float>::quiet_NaN()
                                      : static_cast<float>(part / whole);
}

OutputError output_error(const float* sparse, const float* dense, Index n_channels) {
  // One pass for all sums, in lanes of one vector: this runs for every row of every configuration.
  Lane error = Lane::Zero();
  Lane largest = Lane::Zero();
  Lane sparse_square = Lane::Zero();
  Lane dense_square = Lane::Zero();
  Lane product = Lane::Zero();
  for (Index c = 0; c < n_channels; c += lane_width) {
    const Lane s = load_lane(sparse + c, n_channels - c);
    const Lane d = load_lane(dense + c, n_channels - c);
    const Lane difference = s - d;
    error += difference * difference;
    largest = largest.max(difference.abs());
    sparse_square += s * s;
    dense_square += d * d;
    product += s * d;
  }
  const double sparse_norm = std::sqrt(sparse_square.sum());
  const double dense_norm = std::sqrt(dense_square.sum());
  const bool has_cosine = sparse_norm >= smallest_denominator && dense_norm >= smallest_denominator;
  return {ratio_or_nan(std::sqrt(error.sum()), dense_norm),
          has_cosine ? ratio_or_nan(product.sum(), sparse_norm * dense_norm)
                     : std::numeric_limits<float>::quiet_NaN(),
          static_cast<float>(largest.maxCoeff())};
}

}  // namespace quoka
