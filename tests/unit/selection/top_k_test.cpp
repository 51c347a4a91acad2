#include "quoka/selection/top_k.hpp"

#include <algorithm>
#include <limits>

#include "support/catch.hpp"

using namespace quoka;

namespace {

std::vector<std::int32_t> kept(const std::vector<double>& scores, Index n) {
  std::vector<Ranked> entries;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    entries.push_back({descending_order(scores[i]), static_cast<std::int32_t>(i)});
  }
  std::vector<std::int32_t> indices;
  for (const Ranked& ranked : smallest_in_order(entries, n)) {
    indices.push_back(ranked.index);
  }
  return indices;
}

}  // namespace

TEST_CASE("P22 larger scores come first and equal scores keep the lower position",
          "[selection][top_k]") {
  CHECK(kept({0.5, -2, 3, 0.5, 0.5}, 4) == std::vector<std::int32_t>{2, 0, 3, 4});
  CHECK(kept({1, 1, 1, 1}, 2) == std::vector<std::int32_t>{0, 1});
  CHECK(kept({0.0, -0.0, 0.0}, 3) == std::vector<std::int32_t>{0, 1, 2});
}

TEST_CASE("P22 the kept set grows by one key at a time", "[selection][top_k]") {
  const std::vector<double> scores{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
  std::vector<std::int32_t> smaller;
  for (Index n = 0; n <= 11; ++n) {
    std::vector<std::int32_t> larger = kept(scores, n);
    REQUIRE(static_cast<Index>(larger.size()) == n);
    CHECK(std::equal(smaller.begin(), smaller.end(), larger.begin()));
    smaller = larger;
  }
}

TEST_CASE("the order of negative tiny and infinite scores is that of the numbers",
          "[selection][top_k]") {
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(kept({-inf, -1, -1e-300, 0, 1e-300, 1, inf}, 7) ==
        std::vector<std::int32_t>{6, 5, 4, 3, 2, 1, 0});
}
