#pragma once

#include <cstdint>

namespace quoka {

/// Names one random draw. The same coordinates always give the same number, in any order of calls
/// and on any thread, so random choices nest over sizes.
struct RandomCoordinates {
  std::uint64_t seed = 0;
  std::int64_t layer = 0;
  std::int64_t chunk_begin = 0;  ///< absolute position of the chunk's first row
  std::int64_t head = 0;
  std::int64_t position = 0;  ///< absolute position
};

/// Returns 64 well-mixed bits for the coordinates: the SplitMix64 finaliser chained over the five
/// numbers in the order they are declared.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014).
inline std::uint64_t random_bits(const RandomCoordinates& at) {
  std::uint64_t state = 0;
  const auto mix = [&state](std::uint64_t value) {
    state += value + 0x9e3779b97f4a7c15ULL;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
    state ^= state >> 31;
  };
  mix(at.seed);
  mix(static_cast<std::uint64_t>(at.layer));
  mix(static_cast<std::uint64_t>(at.chunk_begin));
  mix(static_cast<std::uint64_t>(at.head));
  mix(static_cast<std::uint64_t>(at.position));
  return state;
}

}  // namespace quoka
