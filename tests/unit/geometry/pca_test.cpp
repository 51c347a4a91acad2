#include "quoka/geometry/pca.hpp"

#include <cmath>
#include <numbers>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"
#include "support/tiny_layer.hpp"

namespace {

using namespace quoka;
using namespace quoka::test;

/// Uniform rows whose column j is 2^-j wide: variances that differ by a factor of 4.
Matrix stretched_rows(Index n, Index width, std::uint64_t seed) {
  Matrix rows = NumberStream(seed).matrix(n, width);
  for (Index j = 0; j < width; ++j) {
    rows.col(j) *= std::exp2(-static_cast<float>(j));
  }
  return rows;
}

Pca pca_of(const Matrix& rows) {
  const ConstMatrixView block = view(rows);
  return principal_components(std::span(&block, 1));
}

/// Turns the plane of two channels; exact in float64.
MatrixD rotation(Index width, Index a, Index b, double angle) {
  MatrixD turn = MatrixD::Identity(width, width);
  turn(a, a) = turn(b, b) = std::cos(angle);
  turn(a, b) = -std::sin(angle);
  turn(b, a) = std::sin(angle);
  return turn;
}

void check_near(const MatrixD& actual, const MatrixD& expected, double absolute) {
  const NearReport report = near(actual, expected, 0, absolute);
  INFO(report.message);
  CHECK(report.ok());
}

TEST_CASE("Points on a diagonal have one component along it", "[geometry][pca]") {
  Matrix rows(3, 2);
  rows << 0, 0, 1, -1, 2, -2;
  const Pca pca = pca_of(rows);
  const double half = std::numbers::sqrt2 / 2;
  // Mean (1, -1); squared distances 2, 0, 2 along the diagonal, divisor n - 1 = 2.
  check_near(pca.mean, (VectorD(2) << 1, -1).finished(), 0);
  check_near(pca.variances, (VectorD(2) << 2, 0).finished(), 1e-15);
  CHECK_THAT(std::abs(pca.basis(0, 0)), Catch::Matchers::WithinAbs(half, 1e-14));
  CHECK_THAT(pca.basis(0, 0), Catch::Matchers::WithinAbs(-pca.basis(0, 1), 1e-14));
  const MatrixD coordinates = pca_coordinates(pca, view(rows), 1);
  CHECK_THAT(std::abs(coordinates(0, 0)), Catch::Matchers::WithinAbs(2 * half, 1e-14));
  CHECK_THAT(coordinates(0, 0), Catch::Matchers::WithinAbs(-coordinates(2, 0), 1e-14));
}

TEST_CASE("The same rows give the same components bit for bit", "[geometry][pca]") {
  const Matrix rows = stretched_rows(300, 7, 1);
  const Pca first = pca_of(rows);
  const Pca second = pca_of(rows);
  CHECK(first.basis == second.basis);
  CHECK(first.variances == second.variances);
  CHECK(first.mean == second.mean);
}

TEST_CASE("The loading of largest magnitude is positive", "[geometry][pca]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Pca pca = pca_of(NumberStream(seed).matrix(40, 5));
    for (Index i = 0; i < 5; ++i) {
      Index largest = 0;
      pca.basis.row(i).cwiseAbs().maxCoeff(&largest);
      CHECK(pca.basis(i, largest) > 0);
    }
  }
}

TEST_CASE("P40 components change continuously and keep their sign when a row is added",
          "[geometry][pca]") {
  const Index n = 400;
  const Matrix more = stretched_rows(n + 1, 6, 2);
  const Pca with = pca_of(more);
  const Pca without = pca_of(more.topRows(n));
  // A row of norm below 2 moves the covariance by less than 4 / n in norm; a direction turns by at
  // most that over the gap to its neighbours (Davis and Kahan). Variances are 4^-j / 3.
  for (Index i = 0; i < 2; ++i) {
    const double gap = std::pow(0.25, static_cast<double>(i)) / 3 * 0.75;
    CHECK((with.basis.row(i) - without.basis.row(i)).norm() <
          2 * 4 / (static_cast<double>(n) * gap));
  }
  CHECK((with.basis.row(0) - without.basis.row(0)).norm() > 0);
}

TEST_CASE("Rotated rows have a rotated basis and the same variances and coordinates",
          "[geometry][pca]") {
  const Matrix rows = stretched_rows(500, 5, 3);
  const MatrixD turn = rotation(5, 0, 2, 0.9) * rotation(5, 1, 4, -2.2) * rotation(5, 3, 0, 0.4);
  const Matrix turned = (rows.cast<double>() * turn.transpose()).cast<float>();
  const Pca pca = pca_of(rows);
  const Pca other = pca_of(turned);
  // Rotated rows are rounded to float32 (2^-24 relative); the smallest gap is 3/4 of 4^-4 / 3, so
  // that directions turn by about 2^-24 / 1e-3.
  constexpr double tolerance = 1e-4;
  check_near(other.variances, pca.variances, 1e-6);
  const MatrixD rotated_basis = pca.basis * turn.transpose();
  const MatrixD coordinates = pca_coordinates(pca, view(rows), 5);
  const MatrixD other_coordinates = pca_coordinates(other, view(turned), 5);
  for (Index i = 0; i < 5; ++i) {
    const double sign = rotated_basis.row(i).dot(other.basis.row(i)) > 0 ? 1 : -1;
    check_near(sign * other.basis.row(i), rotated_basis.row(i), tolerance);
    check_near(sign * other_coordinates.col(i), coordinates.col(i), tolerance);
  }
}

TEST_CASE("Nearly equal variances are flagged on both sides of the gap", "[geometry][pca]") {
  // Rows +-w_j along each axis j: variance 2 w_j^2 / (n - 1).
  const auto flags = [](const std::vector<float>& widths) {
    const auto n = static_cast<Index>(widths.size());
    Matrix rows = Matrix::Zero(2 * n, n);
    for (Index j = 0; j < n; ++j) {
      rows(2 * j, j) = widths[static_cast<std::size_t>(j)];
      rows(2 * j + 1, j) = -widths[static_cast<std::size_t>(j)];
    }
    return pca_of(rows).near_equal;
  };
  CHECK(flags({4, 2, 1}) == std::vector{false, false, false});
  CHECK(flags({4, 2, 2}) == std::vector{false, true, true});
  // Variances in a ratio of 1.004^2 = 1.008 and 1.006^2 = 1.012: a gap of 0.8 % and of 1.2 %.
  CHECK(flags({4.016F, 4, 1}) == std::vector{true, true, false});
  CHECK(flags({4.024F, 4, 1}) == std::vector{false, false, false});
}

TEST_CASE("Blocks count as one list of rows", "[geometry][pca]") {
  const Matrix rows = stretched_rows(600, 4, 5);
  const Matrix top = rows.topRows(311);
  const Matrix bottom = rows.bottomRows(289);
  const std::vector<ConstMatrixView> blocks{view(top), view(bottom)};
  const Pca split = principal_components(blocks);
  const Pca whole = pca_of(rows);
  // Sums of 600 terms below 1 in another order: 600 * 2^-53, over the smallest gap of 4^-3 / 4.
  check_near(split.basis, whole.basis, 1e-10);
  check_near(split.variances, whole.variances, 1e-13);
}

TEST_CASE("A single row has no variance", "[geometry][pca]") {
  const Pca pca = pca_of(stretched_rows(1, 3, 6));
  CHECK(pca.variances.isZero(0));
  CHECK(pca.near_equal == std::vector{true, true, true});
}

TEST_CASE("Blocks that do not fit together are refused", "[geometry][pca]") {
  const Matrix three = Matrix::Ones(2, 3);
  const Matrix four = Matrix::Ones(2, 4);
  const Matrix none(0, 3);
  const std::vector<ConstMatrixView> differ{view(three), view(four)};
  const std::vector<ConstMatrixView> empty{view(none)};
  CHECK_THROWS_AS(principal_components(differ), ShapeError);
  CHECK_THROWS_AS(principal_components(empty), ShapeError);
  CHECK_THROWS_AS(principal_components({}), ShapeError);
}

}  // namespace
