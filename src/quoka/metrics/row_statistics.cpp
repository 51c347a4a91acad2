#include "quoka/metrics/row_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace quoka {
namespace {

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

/// Order statistics of an unsorted array: each search narrows the range of the later ones.
class Quantiles {
 public:
  explicit Quantiles(std::vector<float> values) : values_(std::move(values)) {}

  /// Quantile q within the part [begin, end) of the sorted order that is already in place.
  /// Returns the place up to which lower quantiles can be searched.
  std::size_t find(double q, std::size_t begin, std::size_t end, float& result) {
    const double position = q * static_cast<double>(values_.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const auto at = [this](std::size_t i) {
      return values_.begin() + static_cast<std::ptrdiff_t>(i);
    };
    std::nth_element(at(begin), at(below), at(end));
    const auto next = std::min_element(at(below) + 1, at(end));
    const double low = static_cast<double>(*at(below));
    // Values from `end` on are no smaller, so the neighbour is there if the part ends here.
    const double high = next != at(end) ? static_cast<double>(*next)
                        : end < values_.size()
                            ? static_cast<double>(*std::min_element(at(end), values_.end()))
                            : low;
    result = static_cast<float>(low + (position - static_cast<double>(below)) * (high - low));
    return below;
  }

  [[nodiscard]] std::size_t size() const { return values_.size(); }

 private:
  std::vector<float> values_;
};

/// Writes the five quantiles: the median first, so that the others search half of the values.
void write_quantiles(std::vector<float> values, std::span<float> results) {
  Quantiles search(std::move(values));
  const std::size_t n = search.size();
  const std::size_t p50 = search.find(0.50, 0, n, results[2]);
  const std::size_t p05 = search.find(0.05, 0, p50 + 1, results[1]);
  search.find(0.01, 0, p05 + 1, results[0]);
  const std::size_t p95 = search.find(0.95, p50, n, results[3]);
  search.find(0.99, p95, n, results[4]);
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
  write_quantiles(thinned(std::move(valid)), std::span(result).subspan(first_quantile, 5));
  return result;
}

}  // namespace quoka
