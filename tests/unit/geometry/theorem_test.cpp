#include "quoka/geometry/theorem.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "support/tiny_layer.hpp"

namespace {

using namespace quoka;
using namespace quoka::test;

TheoremAngles angles_of(const VectorD& mean, const VectorD& query, const VectorD& key) {
  const auto cosine = [](const VectorD& a, const VectorD& b) {
    return a.dot(b) / (a.norm() * b.norm());
  };
  return {cosine(mean, key), cosine(query, key), cosine(query, mean)};
}

TEST_CASE("Bounds of worked cases", "[geometry][theorem]") {
  // alpha = -0.6, beta = 0.8: 1 - 1.4^2 / 2 = 0.02, and -0.48 + 0.8 * 0.6 = 0.
  const TheoremAngles angles{-0.6, 0.8, 0};
  CHECK_THAT(paper_bound(angles), Catch::Matchers::WithinAbs(0.02, 1e-15));
  CHECK_THAT(spherical_bound(angles), Catch::Matchers::WithinAbs(0.0, 1e-15));
  CHECK(theorem_applies(angles));
  CHECK_FALSE(theorem_applies({0.6, 0.8, 0}));
  CHECK_FALSE(theorem_applies({-0.6, -0.8, 0}));
  CHECK_FALSE(theorem_applies({0, 0.8, 0}));
}

TEST_CASE("A key along the query and against the mean makes both bounds minus 1",
          "[geometry][theorem]") {
  const TheoremAngles angles{-1, 1, -1};
  CHECK(paper_bound(angles) == -1.0);
  CHECK(spherical_bound(angles) == -1.0);
}

TEST_CASE("A cosine beyond 1 by rounding gives no NaN", "[geometry][theorem]") {
  CHECK_THAT(spherical_bound({1 + 1e-15, 0.5, 0.5}), Catch::Matchers::WithinAbs(0.5, 1e-14));
}

TEST_CASE("Neither bound is broken by 65000 random triples of any width", "[geometry][theorem]") {
  // Cosines of 64 products each carry errors below 64 * 2^-53 = 7e-15; a root near 0 takes the
  // square root of that.
  constexpr double rounding = 1e-7;
  Index n_applies = 0;
  for (const Index width : {2, 4, 16, 64}) {
    NumberStream numbers(static_cast<std::uint64_t>(width));
    for (int i = 0; i < 65000 / 4; ++i) {
      const MatrixD rows = numbers.matrix(3, width).cast<double>();
      const TheoremAngles angles = angles_of(rows.row(0), rows.row(1), rows.row(2));
      const double paper = paper_bound(angles);
      const double spherical = spherical_bound(angles);
      if (!(angles.query_mean <= spherical + rounding && spherical <= paper + 1e-15)) {
        FAIL("width " << width << ", triple " << i << ": cosine " << angles.query_mean
                      << ", spherical bound " << spherical << ", the paper's " << paper);
      }
      n_applies += theorem_applies(angles) ? 1 : 0;
    }
  }
  CHECK(n_applies > 65000 / 8);  // both signs are even chances, so a quarter
}

TEST_CASE("In the plane the spherical bound is reached where the query lies between",
          "[geometry][theorem]") {
  // Key, query and mean at angles 0, 0.3 and 0.8: the query is as near to the mean as it can be.
  const TheoremAngles angles{std::cos(0.8), std::cos(0.3), std::cos(0.5)};
  CHECK_THAT(spherical_bound(angles), Catch::Matchers::WithinAbs(angles.query_mean, 1e-15));
  CHECK(paper_bound(angles) > spherical_bound(angles) + 0.05);
}

}  // namespace
