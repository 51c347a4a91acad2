#include "quoka/metrics/row_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace quoka {
namespace {

constexpr std::array<double, 5> quantiles{0.01, 0.05, 0.50, 0.95, 0.99};

/// Every k-th of the values, k = 1 unless there are too many.
std::vector<float> thinned(std::vector<float> values) {
  const auto n = static_cast<Index>(values.size());
  const Index step = (n + max_exact_quantile_rows - 1) / max_exact_quantile_rows;
  if (step <= 1) {
    return values;
  }
  std::vector<float> sample;
  for (Index i = 0; i < n; i += step) {
    sample.push_back(values[static_cast<std::size_t>(i)]);
  }
  return sample;
}

/// Writes the five quantiles, ascending: each search continues to the right of the one before.
void write_quantiles(std::vector<float> values, std::span<float> results) {
  auto begin = values.begin();
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    const double position = quantiles[i] * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::ptrdiff_t>(position);
    const auto nth = values.begin() + below;
    std::nth_element(begin, nth, values.end());
    const auto above = std::min_element(nth + 1, values.end());
    const double low = static_cast<double>(*nth);
    const double high = above == values.end() ? low : static_cast<double>(*above);
    results[i] = static_cast<float>(low + (position - static_cast<double>(below)) * (high - low));
    begin = nth;
  }
}

}  // namespace

std::array<float, n_row_statistics> row_statistics(std::span<const float> values, Better better) {
  std::array<float, n_row_statistics> result{};
  result.fill(std::numeric_limits<float>::quiet_NaN());
  std::vector<float> valid;
  valid.reserve(values.size());
  double sum = 0;
  for (const float value : values) {
    if (!std::isnan(value)) {
      valid.push_back(value);
      sum += static_cast<double>(value);
    }
  }
  result[static_cast<std::size_t>(RowStatistic::n_valid)] = static_cast<float>(valid.size());
  if (valid.empty()) {
    return result;
  }
  result[static_cast<std::size_t>(RowStatistic::mean)] =
      static_cast<float>(sum / static_cast<double>(valid.size()));
  const auto [smallest, largest] = std::ranges::minmax(valid);
  result[static_cast<std::size_t>(RowStatistic::worst)] =
      better == Better::higher ? smallest : largest;
  const auto first_quantile = static_cast<std::size_t>(RowStatistic::p01);
  write_quantiles(thinned(std::move(valid)),
                  std::span(result).subspan(first_quantile, quantiles.size()));
  return result;
}

}  // namespace quoka
