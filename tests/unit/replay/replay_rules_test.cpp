// The engine against the slow reference for every rule that shapes the softmax.

#include "quoka/replay/replay.hpp"
#include "reference/compare.hpp"
#include "support/catch.hpp"

namespace quoka::test {
namespace {

TinyLayer small_layer(std::uint64_t seed, Index q_offset = 0) {
  return tiny_layer({.n_q_heads = 4, .n_kv_heads = 2, .n_tokens = 50, .q_offset = q_offset}, seed);
}

}  // namespace

TEST_CASE("P04 windows smaller and larger than a chunk", "[replay][rules]") {
  const Index window = GENERATE(1, 2, 4, 8, 16, 20, 49, 50, 1000);
  const Index q_offset = GENERATE(0, 11);
  CAPTURE(window, q_offset);
  TinyLayer layer = small_layer(31, q_offset);
  layer.rules.sliding_window = window;
  check_equal(layer, mixed_configs());
  check_equal(layer, mixed_configs("budget=2"));
}

TEST_CASE("P04 the window counts the query itself", "[replay][rules]") {
  // Window 4: the chunk [4, 8) has candidates 1, 2 and 3 (row 4 sees 1 to 4).
  TinyLayer layer = tiny_layer({.n_q_heads = 1, .n_kv_heads = 1, .n_tokens = 8}, 32);
  layer.rules.sliding_window = 4;
  ReplaySettings settings;
  settings.by_chunk = true;
  const auto result =
      replay_layer(layer.input(), std::vector{config_from("chunk_size=4 budget=1")}, settings)[0];
  const Index n_candidates = n_row_metrics + n_chunk_metrics;
  CHECK(result.chunk_values[1](0, n_candidates) == 3.0F);
}

TEST_CASE("attention chunks cut the history", "[replay][rules]") {
  const Index width = GENERATE(1, 5, 16, 20, 32, 100);
  const Index q_offset = GENERATE(0, 11);
  CAPTURE(width, q_offset);
  TinyLayer layer = small_layer(33, q_offset);
  layer.rules.attention_chunk = width;
  check_equal(layer, mixed_configs());
  check_equal(layer, mixed_configs("budget=2"));
}

TEST_CASE("window and attention chunk together", "[replay][rules]") {
  TinyLayer layer = small_layer(34, 7);
  layer.rules.attention_chunk = 24;
  layer.rules.sliding_window = 20;
  check_equal(layer, mixed_configs());
}

TEST_CASE("P01 the softcap reaches the probabilities", "[replay][rules]") {
  const double softcap = GENERATE(0.5, 1.0, 50.0);
  CAPTURE(softcap);
  TinyLayer layer = small_layer(35);
  layer.rules.softcap = softcap;
  check_equal(layer, mixed_configs());
}

TEST_CASE("P01 a softcap changes the result clearly", "[replay][rules]") {
  TinyLayer layer = small_layer(36);
  const std::vector configs = {config_from("budget=4")};
  const Index column = cell_column(RowMetric::mass_recall, RowStatistic::mean);
  const float uncapped = replay_layer(layer.input(), configs, {})[0].values(0, column);
  layer.rules.softcap = 1;
  const float capped = replay_layer(layer.input(), configs, {})[0].values(0, column);
  CHECK(std::abs(capped - uncapped) > 0.01F);
}

TEST_CASE("P02 sink logits of every size", "[replay][rules]") {
  TinyLayer layer = small_layer(37);
  // Far below the logits, among them, well above (p around e^-20), and so far above that p is 0.
  layer.rules.sinks = {-50.0F, 1.0F, 20.0F, 300.0F};
  check_equal(layer, mixed_configs());
}

TEST_CASE("ALiBi before and after the scale", "[replay][rules]") {
  const Alibi alibi = GENERATE(Alibi::plain, Alibi::scaled);
  TinyLayer layer = small_layer(38, 5);
  layer.rules.alibi = alibi;
  layer.rules.alibi_slopes = {0.5F, 0.25F, 0.0625F, 0.0F};
  check_equal(layer, mixed_configs());
}

TEST_CASE("P05 unusual scales", "[replay][rules]") {
  const double scale = GENERATE(1.0 / 64, 1.0, 2.0);
  CAPTURE(scale);
  TinyLayer layer = small_layer(39);
  layer.rules.scale = scale;
  check_equal(layer, mixed_configs());
}

TEST_CASE("all rules at once", "[replay][rules]") {
  TinyLayer layer = small_layer(40, 3);
  layer.rules.scale = 0.5;
  layer.rules.softcap = 3;
  layer.rules.sliding_window = 30;
  layer.rules.attention_chunk = 40;
  layer.rules.alibi = Alibi::plain;
  layer.rules.alibi_slopes = {0.1F, 0.2F, 0.0F, 0.05F};
  layer.rules.sinks = {0.0F, -1.0F, 2.0F, 1.0F};
  check_equal(layer, mixed_configs());
}

TEST_CASE("a kept set far below the best key does not underflow", "[replay][rules]") {
  // Key 0 has a logit 200 above all others: exp of the rest underflows unless the softmax over the
  // kept keys has its own maximum. sink_recent with keep_first = 0 drops key 0.
  TinyLayer layer =
      tiny_layer({.n_q_heads = 2, .n_kv_heads = 1, .n_tokens = 40, .k_head_dim = 2}, 41);
  for (Matrix& q : layer.q) {
    q.col(0).setConstant(20.0F);
  }
  layer.rules.scale = 1;
  layer.k[0].col(0).setZero();
  layer.k[0](0, 0) = 10.0F;
  const std::vector configs = {config_from("selector=sink_recent budget=5"),
                               config_from("selector=random budget=3"),
                               config_from("candidates=cache selector=sink_recent budget=18")};
  const Comparison comparison = compare_with_reference(layer, configs);
  INFO(comparison.message);
  CHECK(comparison.n_differences == 0);
  CHECK(comparison.n_compared == 3);
}

}  // namespace quoka::test
