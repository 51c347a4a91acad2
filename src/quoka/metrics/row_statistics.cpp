#include "quoka/metrics/row_statistics.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "quoka/core/float64_sums.hpp"

namespace quoka {
namespace {

constexpr std::array<double, 5> quantiles{0.01, 0.05, 0.50, 0.95, 0.99};

/// Every k-th of the values, k = 1 unless there are too many.
std::vector<float> thinned(std::span<const float> values) {
  const std::size_t limit = max_exact_quantile_rows;
  const std::size_t step = (values.size() + limit - 1) / limit;
  std::vector<float> sample;
  sample.reserve(values.size() / step + 1);
  for (std::size_t i = 0; i < values.size(); i += step) {
    sample.push_back(values[i]);
  }
  return sample;
}

/// Order statistics from a counting sort into bins. Values crowd at the good end of a metric (near
/// 1 or near 0), so a bin is a range of distances from the best value, 32 to each power of two.
class OrderStatistics {
 public:
  OrderStatistics(std::span<const float> values, float smallest, float largest, Better better)
      : by_bin_(values.size()) {
    const std::vector<std::uint16_t> bins = better == Better::higher
                                                ? bins_below(values, smallest, largest)
                                                : bins_above(values, smallest, largest);
    for (const std::uint16_t bin : bins) {
      ++end_[bin];
    }
    std::array<std::uint32_t, n_bins> next{};
    for (std::size_t bin = 1; bin < n_bins; ++bin) {
      next[bin] = end_[bin - 1];
      end_[bin] += end_[bin - 1];
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      by_bin_[next[bins[i]]++] = values[i];
    }
  }

  /// The values at this place of the sorted order and at the next one (the same, at the end). Ranks
  /// must not go down from call to call: what lies below the last one stays where it is.
  std::pair<float, float> at(std::size_t rank) {
    const auto bin = std::ranges::upper_bound(end_, rank);
    const auto begin = bin == end_.begin() ? std::size_t{0} : *std::prev(bin);
    const auto place = [this](std::size_t i) {
      return by_bin_.begin() + static_cast<std::ptrdiff_t>(i);
    };
    const auto nth = place(rank);
    std::nth_element(place(std::max(begin, n_settled_)), nth, place(*bin));
    n_settled_ = rank;
    if (rank + 1 == by_bin_.size()) {
      return {*nth, *nth};
    }
    const std::size_t next_end = rank + 1 < *bin ? *bin : *std::ranges::upper_bound(end_, rank + 1);
    return {*nth, *std::min_element(nth + 1, place(next_end))};
  }

 private:
  static constexpr int dropped_bits = 18;  ///< of the 23 of a mantissa: 5 bits make 32 bins
  static constexpr int n_octaves = 24;     ///< what is closer to the best than 2^-24 is one bin
  static constexpr std::uint16_t last_bin = n_octaves << (23 - dropped_bits);
  static constexpr std::size_t n_bins = last_bin + 1;

  /// Bin of a distance from the best value, ascending. NaN (infinity from infinity) is distance 0.
  static std::uint16_t bin_of(float distance, float smallest_distance) {
    const float kept = std::max(smallest_distance, distance);
    return static_cast<std::uint16_t>(
        (std::bit_cast<std::uint32_t>(kept) - std::bit_cast<std::uint32_t>(smallest_distance)) >>
        dropped_bits);
  }

  static std::vector<std::uint16_t> bins_above(std::span<const float> values, float smallest,
                                               float largest) {
    const float smallest_distance = std::ldexp(largest - smallest, -n_octaves);
    std::vector<std::uint16_t> bins(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      bins[i] = bin_of(values[i] - smallest, smallest_distance);
    }
    return bins;
  }

  static std::vector<std::uint16_t> bins_below(std::span<const float> values, float smallest,
                                               float largest) {
    const float smallest_distance = std::ldexp(largest - smallest, -n_octaves);
    std::vector<std::uint16_t> bins(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      bins[i] =
          static_cast<std::uint16_t>(last_bin - bin_of(largest - values[i], smallest_distance));
    }
    return bins;
  }

  std::vector<float> by_bin_;                ///< bins in order, each in any order
  std::array<std::uint32_t, n_bins> end_{};  ///< values in this and lower bins
  std::size_t n_settled_ = 0;                ///< no larger value stands before this place
};

/// Writes the quantiles, interpolated linearly at (n - 1) q.
void write_quantiles(std::span<const float> values, float smallest, float largest, Better better,
                     std::span<float> results) {
  OrderStatistics order(values, smallest, largest, better);
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    const double position = quantiles[i] * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const auto [low, high] = order.at(below);
    const double step = static_cast<double>(high) - static_cast<double>(low);
    results[i] = static_cast<float>(static_cast<double>(low) +
                                    (position - static_cast<double>(below)) * step);
  }
}

}  // namespace

std::array<float, n_row_statistics> row_statistics(std::span<const float> values, Better better) {
  std::array<float, n_row_statistics> result{};
  result.fill(std::numeric_limits<float>::quiet_NaN());
  std::vector<float> without_nan;
  // Counted, not searched: the compiler makes vectors of a count, and most columns hold no NaN.
  if (std::ranges::count_if(values, [](float value) { return std::isnan(value); }) > 0) {
    std::ranges::copy_if(values, std::back_inserter(without_nan),
                         [](float value) { return !std::isnan(value); });
    values = without_nan;
  }
  result[static_cast<std::size_t>(RowStatistic::n_valid)] = static_cast<float>(values.size());
  if (values.empty()) {
    return result;
  }
  result[static_cast<std::size_t>(RowStatistic::mean)] =
      static_cast<float>(sum_float64(values.data(), static_cast<Index>(values.size())) /
                         static_cast<double>(values.size()));
  const Eigen::Map<const Eigen::ArrayXf> array(values.data(), static_cast<Index>(values.size()));
  const float smallest = array.minCoeff();
  const float largest = array.maxCoeff();
  result[static_cast<std::size_t>(RowStatistic::worst)] =
      better == Better::higher ? smallest : largest;
  const auto first_quantile = static_cast<std::size_t>(RowStatistic::p01);
  const auto results = std::span(result).subspan(first_quantile, quantiles.size());
  if (values.size() > max_exact_quantile_rows) {
    write_quantiles(thinned(values), smallest, largest, better, results);
  } else {
    write_quantiles(values, smallest, largest, better, results);
  }
  return result;
}

}  // namespace quoka
