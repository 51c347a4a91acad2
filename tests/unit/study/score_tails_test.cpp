#include "quoka/study/score_tails.hpp"

#include <cmath>

#include "support/catch.hpp"

namespace {

using namespace quoka;
using Catch::Matchers::WithinAbs;

VectorD numbers(std::initializer_list<double> values) {
  VectorD result(std::ssize(values));
  std::ranges::copy(values, result.begin());
  return result;
}

TEST_CASE("Moments of one list of scores", "[study][tails]") {
  DeviationStatistics tails;
  tails.add(numbers({0, 0, 0, 0.4}));
  // Deviations -0.1 (three times) and 0.3: squares 0.03 + 0.09 = 0.12, cubes -0.003 + 0.027,
  // fourths 0.0003 + 0.0081.
  const double variance = 0.12 / 4;
  CHECK(tails.n_scores() == 4);
  CHECK_THAT(tails.spread(), WithinAbs(std::sqrt(variance), 1e-15));
  CHECK_THAT(tails.skewness(), WithinAbs(0.024 / 4 / std::pow(variance, 1.5), 1e-12));
  CHECK_THAT(tails.excess_kurtosis(), WithinAbs(0.0084 / 4 / (variance * variance) - 3, 1e-12));
  CHECK_THAT(tails.top_share(), WithinAbs(1, 1e-15));
  CHECK_THAT(tails.histogram()[50 - 5], WithinAbs(0.75, 1e-15));
  CHECK_THAT(tails.histogram()[50 + 15], WithinAbs(0.25, 1e-15));
}

TEST_CASE("Each list has its own mean", "[study][tails]") {
  DeviationStatistics tails;
  tails.add(numbers({0.1, 0.3}));
  tails.add(numbers({-0.9, -0.7}));
  CHECK_THAT(tails.spread(), WithinAbs(0.1, 1e-15));
  CHECK_THAT(tails.skewness(), WithinAbs(0, 1e-10));
  CHECK_THAT(tails.excess_kurtosis(), WithinAbs(-2, 1e-10));  // two-point distribution
}

TEST_CASE("Deviations beyond the histogram fall into its outermost bins", "[study][tails]") {
  DeviationStatistics tails;
  tails.add(numbers({-3, 3}));
  CHECK(tails.histogram()[0] == 0.5);
  CHECK(tails.histogram()[n_deviation_bins - 1] == 0.5);
}

TEST_CASE("Without two scores in a list nothing is defined", "[study][tails]") {
  DeviationStatistics tails;
  tails.add(numbers({0.3}));
  CHECK(tails.n_scores() == 0);
  CHECK(std::isnan(tails.spread()));
  CHECK(std::isnan(tails.excess_kurtosis()));
  CHECK(std::isnan(tails.top_share()));
  CHECK(tails.histogram().array().isNaN().all());
}

}  // namespace
