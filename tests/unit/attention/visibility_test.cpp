#include "quoka/attention/visibility.hpp"

#include "support/catch.hpp"

using namespace quoka;

TEST_CASE("without window or chunk every key up to the query itself is visible",
          "[attention][visibility]") {
  CHECK(visible_keys({}, 0) == IndexRange{0, 1});
  CHECK(visible_keys({}, 7) == IndexRange{0, 8});
}

TEST_CASE("P04 a window of 4 holds the query and the three keys before it",
          "[attention][visibility]") {
  const AttentionRules rules{.sliding_window = 4};

  CHECK(visible_keys(rules, 2) == IndexRange{0, 3});
  CHECK(visible_keys(rules, 3) == IndexRange{0, 4});
  CHECK(visible_keys(rules, 7) == IndexRange{4, 8});
}

TEST_CASE("an attention chunk hides everything before its own begin", "[attention][visibility]") {
  const AttentionRules rules{.attention_chunk = 8};

  CHECK(visible_keys(rules, 7) == IndexRange{0, 8});
  CHECK(visible_keys(rules, 8) == IndexRange{8, 9});
  CHECK(visible_keys(rules, 15) == IndexRange{8, 16});
}

TEST_CASE("window and attention chunk both limit", "[attention][visibility]") {
  const AttentionRules rules{.sliding_window = 4, .attention_chunk = 8};

  CHECK(visible_keys(rules, 9) == IndexRange{8, 10});
  CHECK(visible_keys(rules, 14) == IndexRange{11, 15});
}

TEST_CASE("rows that see a key are those whose visible keys hold it", "[attention][visibility]") {
  const AttentionRules rules =
      GENERATE(AttentionRules{.q_offset = 3}, AttentionRules{.q_offset = 3, .sliding_window = 5},
               AttentionRules{.q_offset = 3, .attention_chunk = 8},
               AttentionRules{.q_offset = 3, .sliding_window = 5, .attention_chunk = 8});
  const IndexRange rows{4, 17};
  for (Index key = 0; key < 25; ++key) {
    const IndexRange seeing = rows_that_see(rules, rows, key);
    for (Index i = 0; i < rows.size(); ++i) {
      CAPTURE(key, i);
      CHECK(seeing.contains(i) ==
            visible_keys(rules, rules.q_offset + rows.begin + i).contains(key));
    }
  }
}
