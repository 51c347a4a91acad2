#include "quoka/metrics/row_statistics.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
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

/// Integer that orders like the float (no NaN); -0 is +0.
std::uint32_t order_bits(float value) {
  constexpr std::uint32_t sign = 0x80000000U;
  const auto bits = std::bit_cast<std::uint32_t>(value + 0.0F);
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

/// Order statistics from a histogram over the values' bits: only the bins that hold a wanted rank
/// are searched. Bits, not values, so that heavy tails spread over the bins too.
class OrderStatistics {
 public:
  OrderStatistics(const std::vector<float>& values, float smallest, float largest)
      : values_(values), lowest_(order_bits(smallest)) {
    const std::uint32_t range = order_bits(largest) - lowest_;
    shift_ = std::max(0, static_cast<int>(std::bit_width(range)) - bin_bits);
    for (const float value : values) {
      ++counts_[bin_of(value)];
    }
    for (std::size_t bin = 0, below = 0; bin < counts_.size(); ++bin) {
      below_[bin] = below;
      below += counts_[bin];
    }
  }

  /// The value at this place of the sorted order.
  float at(std::size_t rank) {
    const auto next = std::ranges::upper_bound(below_, rank);
    const auto bin = static_cast<std::size_t>(next - below_.begin()) - 1;
    if (bin != current_bin_) {
      in_bin_.clear();
      for (const float value : values_) {
        if (bin_of(value) == bin) {
          in_bin_.push_back(value);
        }
      }
      current_bin_ = bin;
    }
    const auto nth = in_bin_.begin() + static_cast<std::ptrdiff_t>(rank - below_[bin]);
    std::ranges::nth_element(in_bin_, nth);
    return *nth;
  }

 private:
  static constexpr int bin_bits = 10;
  static constexpr std::size_t n_bins = std::size_t{1} << bin_bits;

  [[nodiscard]] std::size_t bin_of(float value) const {
    return (order_bits(value) - lowest_) >> shift_;
  }

  const std::vector<float>& values_;
  std::uint32_t lowest_;
  int shift_ = 0;
  std::array<std::size_t, n_bins> counts_{};
  std::array<std::size_t, n_bins> below_{};  ///< values in lower bins
  std::vector<float> in_bin_;                ///< the values of the last bin that was asked for
  std::size_t current_bin_ = n_bins;
};

/// Writes the quantiles, interpolated linearly at (n - 1) q.
void write_quantiles(const std::vector<float>& values, float smallest, float largest,
                     std::span<float> results) {
  OrderStatistics order(values, smallest, largest);
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    const double position = quantiles[i] * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const double low = static_cast<double>(order.at(below));
    const double high = static_cast<double>(order.at(std::min(below + 1, values.size() - 1)));
    results[i] = static_cast<float>(low + (position - static_cast<double>(below)) * (high - low));
  }
}

}  // namespace

std::array<float, n_row_statistics> row_statistics(std::span<const float> values, Better better) {
  std::array<float, n_row_statistics> result{};
  result.fill(std::numeric_limits<float>::quiet_NaN());
  std::vector<float> valid(values.size());
  std::size_t n_valid = 0;
  double sum = 0;
  for (const float value : values) {
    const bool is_valid = !std::isnan(value);
    valid[n_valid] = value;
    n_valid += is_valid ? 1 : 0;
    sum += is_valid ? static_cast<double>(value) : 0.0;
  }
  valid.resize(n_valid);
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
  write_quantiles(thinned(std::move(valid)), smallest, largest,
                  std::span(result).subspan(first_quantile, quantiles.size()));
  return result;
}

}  // namespace quoka
