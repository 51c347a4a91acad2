#include "quoka/geometry/correlation.hpp"

#include <cmath>

#include "support/catch.hpp"

namespace {

using namespace quoka;
using Catch::Matchers::WithinAbs;

TEST_CASE("Correlations of a worked case", "[geometry][correlation]") {
  const std::vector<double> x{1, 2, 3, 4};
  const std::vector<double> y{1, 3, 2, 10};
  // Deviations -1.5 -0.5 0.5 1.5 and -3 -1 -2 6: covariance sum 13, squares 5 and 50.
  CHECK_THAT(pearson(x, y), WithinAbs(13 / std::sqrt(250.0), 1e-15));
  // Ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * 2 / (4 * 15) = 0.8.
  CHECK_THAT(spearman(x, y), WithinAbs(0.8, 1e-15));
}

TEST_CASE("Equal values share their average rank", "[geometry][correlation]") {
  CHECK(average_ranks(std::vector<double>{5, 1, 5, 5, 2}) == std::vector<double>{4, 1, 4, 4, 2});
  CHECK(average_ranks(std::vector<double>{7, 7}) == std::vector<double>{1.5, 1.5});
  CHECK(average_ranks(std::vector<double>{}).empty());
}

TEST_CASE("Spearman with ties is Pearson of the average ranks", "[geometry][correlation]") {
  const std::vector<double> x{1, 2, 2, 4};
  const std::vector<double> y{10, 30, 20, 20};
  // Ranks 1 2.5 2.5 4 and 1 4 2.5 2.5, deviations -1.5 0 0 1.5 and -1.5 1.5 0 0:
  // 2.25 / sqrt(4.5 * 4.5).
  CHECK_THAT(spearman(x, y), WithinAbs(0.5, 1e-15));
}

TEST_CASE("An increasing map leaves Spearman alone and moves Pearson", "[geometry][correlation]") {
  const std::vector<double> x{0.1, -2, 3, 0.7, 1.5};
  const std::vector<double> y{1, 0.5, 2, 4, 3};
  std::vector<double> exp_y;
  for (const double value : y) {
    exp_y.push_back(std::exp(value));
  }
  CHECK(spearman(x, y) == spearman(x, exp_y));
  CHECK(std::abs(pearson(x, y) - pearson(x, exp_y)) > 0.01);
}

TEST_CASE("Values on a line have correlation 1 or minus 1", "[geometry][correlation]") {
  const std::vector<double> x{1, 2, 5};
  CHECK_THAT(pearson(x, std::vector<double>{3, 5, 11}), WithinAbs(1, 1e-15));
  CHECK_THAT(pearson(x, std::vector<double>{-1, -2, -5}), WithinAbs(-1, 1e-15));
}

TEST_CASE("A correlation without two values or with a constant is undefined",
          "[geometry][correlation]") {
  const std::vector<double> x{0.1, 0.2, 0.3};
  const std::vector<double> constant{0.1, 0.1, 0.1};
  CHECK(std::isnan(pearson(x, constant)));
  CHECK(std::isnan(spearman(constant, x)));
  CHECK(std::isnan(pearson(std::vector<double>{1}, std::vector<double>{2})));
  CHECK(std::isnan(pearson(std::vector<double>{}, std::vector<double>{})));
}

}  // namespace
