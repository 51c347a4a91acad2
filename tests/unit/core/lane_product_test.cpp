#include "quoka/core/lane_product.hpp"

#include "support/catch.hpp"
#include "support/near.hpp"
#include "support/tiny_layer.hpp"

using namespace quoka;
using quoka::test::near;

namespace {

/// 20 to 70 products of numbers below 1: each addition is rounded to 2^-24 of at most 70.
constexpr double rounding = 70 * 70 * 6e-8;

}  // namespace

TEST_CASE("lane products equal those of double loops for every tile and rest",
          "[core][lane_product]") {
  const Index n_rows = GENERATE(1, 3, 4, 6, 8, 11, 50);
  const Index n_lanes = GENERATE(16, 32, 48, 64, 80, 144);
  const Index n_inner = GENERATE(1, 20, 70);
  test::NumberStream numbers(41);
  const Matrix left = numbers.matrix(n_rows, n_inner);
  const Matrix left_turned = left.transpose();
  const Matrix right = numbers.matrix(n_inner, n_lanes);
  const MatrixD expected = left.cast<double>() * right.cast<double>();

  Matrix product = Matrix::Constant(n_rows, n_lanes, 3e38F);  // must be overwritten
  lane_product(as_is(view(left)), right, lanes(product));
  const auto report = near(product, expected, 0, rounding);
  INFO(report.message);
  CHECK(report.ok());

  Matrix sum = Matrix::Ones(n_rows, n_lanes);
  add_lane_product(turned(view(left_turned)), right, lanes(sum));
  CHECK(sum == (product.array() + 1.0F).matrix());
}

TEST_CASE("a lane product leaves what lies beside its target alone", "[core][lane_product]") {
  test::NumberStream numbers(42);
  const Matrix left = numbers.matrix(7, 5);
  const Matrix right = numbers.matrix(5, 48);
  Matrix target = Matrix::Constant(9, 80, 7.0F);

  lane_product(as_is(view(left)), right.middleCols(16, 32),
               Lanes(&target(1, 16), 7, 32, Eigen::OuterStride<>(80)));
  CHECK((target.row(0).array() == 7.0F).all());
  CHECK((target.row(8).array() == 7.0F).all());
  CHECK((target.leftCols(16).array() == 7.0F).all());
  CHECK((target.rightCols(32).array() == 7.0F).all());
  const auto report =
      near(target.block(1, 16, 7, 32), left * right.middleCols(16, 32), 0, rounding);
  INFO(report.message);
  CHECK(report.ok());
}

TEST_CASE("P22 equal rows and equal lanes get equal products wherever they lie",
          "[core][lane_product]") {
  const Index n_rows = GENERATE(1, 7, 48, 49, 95);
  const Index n_lanes = GENERATE(16, 48, 96);
  test::NumberStream numbers(43);
  const Matrix left = numbers.matrix(1, 64).replicate(n_rows, 1);
  const Matrix right = numbers.matrix(64, 1).replicate(1, n_lanes);
  Matrix product(n_rows, n_lanes);

  lane_product(as_is(view(left)), right, lanes(product));
  CHECK((product.array() == product(0, 0)).all());
}
