#include "quoka/metrics/output_error.hpp"

#include <array>
#include <cmath>

#include "support/catch.hpp"

using namespace quoka;

TEST_CASE("errors of two rows worked out by hand", "[metrics][output]") {
  // dense (3, 4), sparse (3, 1): difference 3 of norm 5; cosine (9 + 4) / (5 sqrt(10)).
  const std::array<float, 2> dense{3, 4};
  const std::array<float, 2> sparse{3, 1};

  const OutputError error = output_error(sparse.data(), dense.data(), 2);
  CHECK(error.rel_l2 == 0.6F);
  CHECK(error.max_abs == 3.0F);
  CHECK(std::abs(static_cast<double>(error.cosine) - 13.0 / (5.0 * std::sqrt(10.0))) < 1e-7);
}

TEST_CASE("a zero dense output leaves relative error and cosine undefined", "[metrics][output]") {
  const std::array<float, 3> ones{1, 1, 1};
  const std::array<float, 3> zeros{};
  const OutputError error = output_error(ones.data(), zeros.data(), 3);

  CHECK(std::isnan(error.rel_l2));
  CHECK(std::isnan(error.cosine));
  CHECK(error.max_abs == 1.0F);
}

TEST_CASE("every channel counts whatever the width", "[metrics][output]") {
  for (Index n = 1; n <= 40; ++n) {
    // dense 1, sparse 1 but for the last channel, which is 3: difference 2 of norm sqrt(n).
    const Eigen::RowVectorXf dense = Eigen::RowVectorXf::Ones(n);
    Eigen::RowVectorXf sparse = dense;
    sparse[n - 1] = 3;
    const auto size = static_cast<double>(n);
    const OutputError error = output_error(sparse.data(), dense.data(), n);
    CHECK(std::abs(static_cast<double>(error.rel_l2) - 2 / std::sqrt(size)) < 1e-6);
    CHECK(std::abs(static_cast<double>(error.cosine) - (size + 2) / std::sqrt(size * (size + 8))) <
          1e-6);
    CHECK(error.max_abs == 2.0F);
  }
}

TEST_CASE("a ratio with a denominator below 1e-30 is undefined", "[metrics][output]") {
  CHECK(std::isnan(ratio_or_nan(0.0, 0.0)));
  CHECK(std::isnan(ratio_or_nan(1e-32, 1e-31)));
  CHECK(ratio_or_nan(1.0, 4.0) == 0.25F);
}
