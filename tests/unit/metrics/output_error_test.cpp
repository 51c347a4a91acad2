#include "quoka/metrics/output_error.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace quoka;

TEST_CASE("errors of two rows worked out by hand", "[metrics][output]") {
  // dense (3, 4), sparse (3, 1): difference 3 of norm 5; cosine (9 + 4) / (5 sqrt(10)).
  const Eigen::RowVectorXf dense = Eigen::RowVector2f(3, 4);
  const Eigen::RowVectorXf sparse = Eigen::RowVector2f(3, 1);

  const OutputError error = output_error(sparse, dense);
  CHECK(error.rel_l2 == 0.6F);
  CHECK(error.max_abs == 3.0F);
  CHECK(std::abs(static_cast<double>(error.cosine) - 13.0 / (5.0 * std::sqrt(10.0))) < 1e-7);
}

TEST_CASE("a zero dense output leaves relative error and cosine undefined", "[metrics][output]") {
  const OutputError error = output_error(Eigen::RowVectorXf::Ones(3), Eigen::RowVectorXf::Zero(3));

  CHECK(std::isnan(error.rel_l2));
  CHECK(std::isnan(error.cosine));
  CHECK(error.max_abs == 1.0F);
}

TEST_CASE("a ratio with a denominator below 1e-30 is undefined", "[metrics][output]") {
  CHECK(std::isnan(ratio_or_nan(0.0, 0.0)));
  CHECK(std::isnan(ratio_or_nan(1e-32, 1e-31)));
  CHECK(ratio_or_nan(1.0, 4.0) == 0.25F);
}
