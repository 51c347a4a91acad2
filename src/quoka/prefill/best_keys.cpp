#include "quoka/prefill/best_keys.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>

namespace quoka {
namespace {

/// Sign, exponent and the first bits of the mantissa: 16 KiB of counters.
constexpr int bin_bits = 12;

/// Monotone map of numbers to integers; -0 and +0 are equal.
std::uint32_t ascending_order(float score) {
  constexpr std::uint32_t sign = 1U << 31;
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);  // -0 becomes +0
  return (bits & sign) != 0 ? ~bits : bits | sign;
}

std::uint32_t bin_of(std::uint32_t order) { return order >> (32 - bin_bits); }

/// The smallest order that is kept, and how many of its equals are.
struct Cut {
  std::uint32_t order = 0;
  Index n_equal = 0;
};

Cut find_cut(const std::vector<std::uint32_t>& orders, Index n) {
  std::array<Index, 1 << bin_bits> counts{};
  for (const std::uint32_t order : orders) {
    ++counts[bin_of(order)];
  }
  std::uint32_t bin = (1U << bin_bits) - 1;
  while (counts[bin] < n) {
    n -= counts[bin--];
  }
  std::vector<std::uint32_t> in_bin;
  std::ranges::copy_if(orders, std::back_inserter(in_bin),
                       [bin](std::uint32_t order) { return bin_of(order) == bin; });
  const auto nth = in_bin.begin() + (n - 1);
  std::ranges::nth_element(in_bin, nth, std::greater<>());
  const auto n_above =
      std::ranges::count_if(in_bin, [cut = *nth](std::uint32_t order) { return order > cut; });
  return {*nth, n - n_above};
}

}  // namespace

std::vector<std::int32_t> best_keys(const Vector& scores, Index n) {
  std::vector<std::int32_t> keys(static_cast<std::size_t>(std::min(n, scores.size())));
  if (n >= scores.size()) {
    std::iota(keys.begin(), keys.end(), 0);
    return keys;
  }
  if (n == 0) {
    return keys;
  }
  std::vector<std::uint32_t> orders(static_cast<std::size_t>(scores.size()));
  std::ranges::transform(scores, orders.begin(), ascending_order);
  Cut cut = find_cut(orders, n);
  auto next = keys.begin();
  for (std::size_t i = 0; next != keys.end(); ++i) {
    if (orders[i] > cut.order || (orders[i] == cut.order && cut.n_equal-- > 0)) {
      *next++ = static_cast<std::int32_t>(i);
    }
  }
  return keys;
}

}  // namespace quoka
