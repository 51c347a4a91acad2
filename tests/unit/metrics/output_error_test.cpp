#include "quoka/metrics/output_error.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace quoka;

TEST_CASE("errors of two rows worked out by hand", "[metrics][output]") {
  // dense (3, 4), sparse (3, 1): difference 3 of norm 5; cosine (9 + 4) / (5 sqrt(10)).
  const OutputError error = output_error(Eigen::Vector2f(3, 1), Eigen::Vector2f(3, 4));
  CHECK(error.rel_l2 == 0.6F);
  CHECK(error.max_abs == 3.0F);
  CHECK(std::abs(static_cast<double>(error.cosine) - 13.0 / (5.0 * std::sqrt(10.0))) < 1e-7);
}

TEST_CASE("a zero dense output leaves relative error and cosine undefined", "[metrics][output]") {
  const OutputError error = output_error(Vector::Ones(3), Vector::Zero(3));
  CHECK(std::isnan(error.rel_l2));
  CHECK(std::isnan(error.cosine));
  CHECK(error.max_abs == 1.0F);
}

TEST_CASE("lanes side by side have the errors of each alone", "[metrics][output]") {
  // Squares of the lanes from 20 on leave the range of float32: those are compared in float64.
  const Index n_channels = GENERATE(1, 3, 64, 70);
  constexpr Index n_lanes = 27;
  Matrix dense = Matrix::Random(n_channels, padded_lanes(n_lanes));
  Matrix sparse = dense + 0.1F * Matrix::Random(n_channels, dense.cols());
  for (Index lane = 20; lane < n_lanes; ++lane) {
    const float size = lane % 2 == 0 ? 1e-12F : 1e20F;
    dense.col(lane) *= size;
    sparse.col(lane) *= size;
  }
  const LaneArray halves = LaneArray::Constant(dense.cols(), 0.5F);
  const OutputErrors errors = output_errors(2.0F * sparse, halves, dense, n_lanes);
  for (Index lane = 0; lane < n_lanes; ++lane) {
    CAPTURE(n_channels, lane);
    const OutputError alone = output_error(sparse.col(lane), dense.col(lane));
    // At most 70 additions, each rounded to 2^-24.
    CHECK(std::abs(errors.rel_l2[lane] - alone.rel_l2) <= 70 * 6e-8F * alone.rel_l2);
    CHECK(std::abs(errors.cosine[lane] - alone.cosine) <= 70 * 6e-8F);
    CHECK(errors.max_abs[lane] == alone.max_abs);
  }
}

TEST_CASE("a ratio with a denominator below 1e-30 is undefined", "[metrics][output]") {
  CHECK(std::isnan(ratio_or_nan(0.0, 0.0)));
  CHECK(std::isnan(ratio_or_nan(1e-32, 1e-31)));
  CHECK(ratio_or_nan(1.0, 4.0) == 0.25F);
}
