#include "quoka/selection/top_k.hpp"

#include <algorithm>
#include <bit>

namespace quoka {

std::uint64_t descending_order(double score) {
  constexpr std::uint64_t sign = 1ULL << 63;
  const auto bits = std::bit_cast<std::uint64_t>(score + 0.0);  // -0 becomes +0
  const std::uint64_t ascending = (bits & sign) != 0 ? ~bits : bits | sign;
  return ~ascending;
}

std::vector<Ranked> smallest_in_order(std::vector<Ranked> entries, Index n) {
  const auto end_of_kept = entries.begin() + n;
  std::nth_element(entries.begin(), end_of_kept, entries.end());
  entries.resize(static_cast<std::size_t>(n));
  std::ranges::sort(entries);
  return entries;
}

}  // namespace quoka
