#include "quoka/prefill/best_keys.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "support/catch.hpp"
#include "support/tiny_layer.hpp"

using namespace quoka;

namespace {

/// Sorts everything by (score descending, position ascending).
std::vector<std::int32_t> sorted_best(const Vector& scores, Index n) {
  std::vector<std::int32_t> keys(static_cast<std::size_t>(scores.size()));
  std::iota(keys.begin(), keys.end(), 0);
  std::ranges::stable_sort(keys, std::ranges::greater(),
                           [&scores](std::int32_t key) { return scores[key]; });
  keys.resize(static_cast<std::size_t>(std::min(n, scores.size())));
  std::ranges::sort(keys);
  return keys;
}

}  // namespace

TEST_CASE("the best keys are those of a full sort", "[prefill][best_keys]") {
  test::NumberStream numbers(21);
  Vector scores = numbers.matrix(1, 1003).row(0).transpose();
  SECTION("different scores") {}
  SECTION("many equal scores") { scores = (4 * scores).array().round() / 4; }
  SECTION("one value") { scores.setConstant(-0.25F); }
  SECTION("zeros of both signs") {
    scores = (scores.array() > 0).select(0.0F, Vector::Constant(1003, -0.0F));
  }
  SECTION("values of very different size") {
    scores = scores.array().sign() * (80 * scores.array()).exp();
    scores[17] = std::numeric_limits<float>::infinity();
    scores[18] = -std::numeric_limits<float>::infinity();
  }
  for (const Index n : {0, 1, 2, 100, 501, 1002, 1003, 2000}) {
    CHECK(best_keys(scores, n) == sorted_best(scores, n));
  }
}
