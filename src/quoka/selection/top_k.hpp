#pragma once

#include <cstdint>
#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// A key with the number that orders it. Smaller comes first; equal orders keep the lower index, so
/// the order never depends on the algorithm, the number of threads or how many are asked for.
struct Ranked {
  std::uint64_t order = 0;
  std::int32_t index = 0;

  auto operator<=>(const Ranked&) const = default;
};

/// Order that puts larger scores first: a monotone map of numbers to integers (NaN not allowed); -0
/// and +0 are equal.
std::uint64_t descending_order(double score);

/// The first n of the entries in sorted order. Cost: O(entries + n log n).
std::vector<Ranked> smallest_in_order(std::vector<Ranked> entries, Index n);

}  // namespace quoka
