#include "quoka/core/random.hpp"

#include <bit>
#include <cmath>
#include <set>

#include "support/catch.hpp"

namespace quoka {

TEST_CASE("the first step is that of SplitMix64", "[core][random]") {
  // The chain over (0, 0, 0, 0, 0) starts with SplitMix64's first output for seed 0, which is
  // 0xe220a8397b1dcdaf in the reference program (Vigna); the other four steps, from the definition:
  const auto step = [](std::uint64_t state) {
    state += 0x9e3779b97f4a7c15ULL;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
    return state ^ (state >> 31);
  };
  REQUIRE(step(0) == 0xe220a8397b1dcdafULL);
  CHECK(random_bits({}) == step(step(step(step(step(0))))));
}

TEST_CASE("every coordinate changes the number", "[core][random]") {
  const RandomCoordinates origin{1, 2, 3, 4, 5};
  std::set<std::uint64_t> seen = {random_bits(origin)};
  seen.insert(random_bits({2, 2, 3, 4, 5}));
  seen.insert(random_bits({1, 3, 3, 4, 5}));
  seen.insert(random_bits({1, 2, 4, 4, 5}));
  seen.insert(random_bits({1, 2, 3, 5, 5}));
  seen.insert(random_bits({1, 2, 3, 4, 6}));
  seen.insert(random_bits({2, 1, 3, 4, 5}));  // exchanged
  CHECK(seen.size() == 7);
}

TEST_CASE("bits are set half of the time", "[core][random]") {
  constexpr int n_numbers = 10'000;
  std::int64_t n_set = 0;
  for (int position = 0; position < n_numbers; ++position) {
    n_set += std::popcount(random_bits({0, 0, 0, 0, position}));
  }
  const double expected = 32.0 * n_numbers;
  // 640,000 fair bits have a standard deviation of 400; five of them.
  CHECK(std::abs(static_cast<double>(n_set) - expected) < 2000);
}

}  // namespace quoka
