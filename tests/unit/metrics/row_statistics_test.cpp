#include "quoka/metrics/row_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "support/catch.hpp"

using namespace quoka;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

float get(const std::array<float, n_row_statistics>& statistics, RowStatistic which) {
  return statistics[static_cast<std::size_t>(which)];
}

}  // namespace

TEST_CASE("quantiles interpolate linearly between sorted values", "[metrics][statistics]") {
  // 0, 10, ..., 100 shuffled: position 10 q, so p05 = 5, p50 = 50, p99 = 99 (numpy.quantile).
  const std::vector<float> values{70, 0, 100, 30, 10, 90, 50, 20, 80, 40, 60};

  const auto s = row_statistics(values, Better::lower);
  CHECK(get(s, RowStatistic::mean) == 50.0F);
  CHECK(get(s, RowStatistic::p01) == 1.0F);
  CHECK(get(s, RowStatistic::p05) == 5.0F);
  CHECK(get(s, RowStatistic::p50) == 50.0F);
  CHECK(get(s, RowStatistic::p95) == 95.0F);
  CHECK(get(s, RowStatistic::p99) == 99.0F);
  CHECK(get(s, RowStatistic::worst) == 100.0F);
  CHECK(get(s, RowStatistic::n_valid) == 11.0F);
  CHECK(get(row_statistics(values, Better::higher), RowStatistic::worst) == 0.0F);
}

TEST_CASE("rows without a value are left out and counted", "[metrics][statistics]") {
  const std::vector<float> values{nan_value, 2, nan_value, 4};

  const auto s = row_statistics(values, Better::lower);
  CHECK(get(s, RowStatistic::mean) == 3.0F);
  CHECK(get(s, RowStatistic::n_valid) == 2.0F);
}

TEST_CASE("P39 no valid row gives NaN with a count of zero", "[metrics][statistics]") {
  for (const auto& values : {std::vector<float>{}, std::vector<float>{nan_value, nan_value}}) {
    const auto s = row_statistics(values, Better::higher);
    CHECK(std::isnan(get(s, RowStatistic::mean)));
    CHECK(std::isnan(get(s, RowStatistic::worst)));
    CHECK(std::isnan(get(s, RowStatistic::p50)));
    CHECK(get(s, RowStatistic::n_valid) == 0.0F);
  }
}

TEST_CASE("one value is every statistic", "[metrics][statistics]") {
  const auto s = row_statistics(std::vector<float>{0.25F}, Better::higher);

  CHECK(get(s, RowStatistic::p01) == 0.25F);
  CHECK(get(s, RowStatistic::p99) == 0.25F);
  CHECK(get(s, RowStatistic::worst) == 0.25F);
}

TEST_CASE("both zeros are one value", "[metrics][statistics]") {
  const auto s = row_statistics(std::vector<float>{0.0F, -0.0F, 0.0F, -0.0F}, Better::lower);

  CHECK(get(s, RowStatistic::p01) == 0.0F);
  CHECK(get(s, RowStatistic::p99) == 0.0F);
}

TEST_CASE("quantiles are those of the sorted values for any spread", "[metrics][statistics]") {
  // Heavy tails, negative numbers, many equal values: a cubed wave, some of it rounded away.
  for (const std::size_t n : {2U, 3U, 100U, 4097U}) {
    std::vector<float> values(n);
    for (std::size_t i = 0; i < n; ++i) {
      const double wave = std::sin(1.7 * static_cast<double>(i) + 0.3);
      values[i] =
          static_cast<float>(i % 5 == 0 ? std::round(wave) : std::pow(10.0, 8 * wave) * wave);
    }
    const auto s = row_statistics(values, Better::lower);
    std::sort(values.begin(), values.end());
    const auto expected = [&values](double q) {
      const double position = q * static_cast<double>(values.size() - 1);
      const auto below = static_cast<std::size_t>(position);
      const auto low = static_cast<double>(values[below]);
      const auto high = static_cast<double>(values[std::min(below + 1, values.size() - 1)]);
      return static_cast<float>(low + (position - static_cast<double>(below)) * (high - low));
    };
    CHECK(get(s, RowStatistic::p01) == expected(0.01));
    CHECK(get(s, RowStatistic::p05) == expected(0.05));
    CHECK(get(s, RowStatistic::p50) == expected(0.50));
    CHECK(get(s, RowStatistic::p95) == expected(0.95));
    CHECK(get(s, RowStatistic::p99) == expected(0.99));
  }
}

TEST_CASE("above 65536 rows quantiles thin but mean and worst use all rows",
          "[metrics][statistics]") {
  std::vector<float> values(70001);
  std::iota(values.begin(), values.end(), 0.0F);
  values[1] = 1e6F;  // an odd place: every second row misses it

  const auto s = row_statistics(values, Better::lower);
  CHECK(get(s, RowStatistic::p50) == 35000.0F);
  CHECK(get(s, RowStatistic::worst) == 1e6F);
  CHECK(get(s, RowStatistic::n_valid) == 70001.0F);
  CHECK(get(s, RowStatistic::mean) > 35000.0F);
}
