#include "quoka/replay/chunk_plan.hpp"

#include "quoka/replay/shared_plan.hpp"
#include "quoka/selection/parameters.hpp"
#include "support/catch.hpp"

using namespace quoka;

TEST_CASE("chunks cover every row once with the rest in the last", "[replay][plan]") {
  using Chunks = std::vector<IndexRange>;
  CHECK(chunk_rows(10, 4, 0) == Chunks{{0, 4}, {4, 8}, {8, 10}});
  CHECK(chunk_rows(10, 4, 3) == Chunks{{0, 3}, {3, 7}, {7, 10}});
  CHECK(chunk_rows(3, 8, 0) == Chunks{{0, 3}});
  CHECK(chunk_rows(1, 1, 0) == Chunks{{0, 1}});
  CHECK(chunk_rows(2, 8, 5) == Chunks{{0, 2}});
}

TEST_CASE("P15 a history that fits the budget makes a chunk dense equivalent", "[replay][plan]") {
  SelectorConfig config;
  config.budget = Budget::from_keys(64);
  const auto state = [&](Index begin, Index min_history) {
    return chunk_facts({}, {begin, begin + 16}, config, min_history).state;
  };
  CHECK(state(50, 0) == ChunkState::within_budget);
  CHECK(state(64, 0) == ChunkState::within_budget);
  CHECK(state(65, 0) == ChunkState::active);
  CHECK(state(65, 66) == ChunkState::below_min_history);
  CHECK(state(66, 66) == ChunkState::active);
}

TEST_CASE("P04 candidates are the keys that at least one row may see", "[replay][plan]") {
  SelectorConfig config;
  config.budget = Budget::from_keys(1);
  // Window 8, rows 32 to 48: row 32 sees 25 to 32, so 25 to 31 are candidates.
  const AttentionRules window{.sliding_window = 8};
  CHECK(chunk_facts(window, {32, 48}, config, 0).n_candidates == 7);
  CHECK(chunk_facts({.attention_chunk = 16}, {32, 48}, config, 0).n_candidates == 0);
  config.candidates = Candidates::cache;
  CHECK(chunk_facts(window, {32, 48}, config, 0).n_candidates == 23);
  CHECK(chunk_facts({.q_offset = 100}, {0, 1}, config, 0).n_candidates == 101);
}

TEST_CASE("needles count where a question row sees them whole in the history",
          "[replay][needles]") {
  const std::vector<NeedleGroup> groups{{.questions = {{20, 22}}, .needles = {{4, 8}, {14, 18}}}};

  const auto all = chunk_needles({}, {16, 24}, groups);
  REQUIRE(all.size() == 1);
  CHECK(all[0].rows == std::vector<Index>{4, 5});
  CHECK(all[0].spans == std::vector<IndexRange>{{4, 8}});  // the other reaches into the chunk
  CHECK(chunk_needles({.sliding_window = 17}, {16, 24}, groups).size() == 1);  // row 20 sees from 4
  CHECK(chunk_needles({.sliding_window = 16}, {16, 24}, groups).empty());
  CHECK(chunk_needles({}, {8, 16}, groups).empty());
}

TEST_CASE("configurations share chunks then scores then key orders", "[replay][plan]") {
  std::vector<SelectorConfig> configs(6);
  configs[1].budget = Budget::parse("25%");
  configs[2].keep_first = 4;
  configs[3].score = Score::dot;
  configs[4].chunk_size = 64;
  configs[5].selector = SelectorKind::oracle;

  const std::vector<SharedChunking> plan = share_work(configs);
  REQUIRE(plan.size() == 2);
  CHECK(plan[0].config_indices == std::vector<Index>{0, 1, 2, 3, 5});
  REQUIRE(plan[0].scores.size() == 3);
  REQUIRE(plan[0].scores[0].sequences.size() == 2);
  CHECK(plan[0].scores[0].sequences[0].config_indices == std::vector<Index>{0, 1});
  CHECK(plan[0].scores[0].sequences[1].config_indices == std::vector<Index>{2});
}
