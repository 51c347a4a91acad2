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

TEST_CASE("P01 a softcap of 50 changes the result of large logits clearly", "[replay][rules]") {
  TinyLayer layer = small_layer(36);
  for (Matrix& q : layer.q) {
    q *= 12.0F;  // logits up to about 100
  }
  const std::vector configs = {config_from("selector=random budget=4")};
  const Index column = cell_column(RowMetric::kl, RowStatistic::mean);
  const float uncapped = replay_layer(layer.input(), configs, {})[0].values(0, column);
  layer.rules.softcap = 50;
  const float capped = replay_layer(layer.input(), configs, {})[0].values(0, column);
  CHECK(std::abs(capped - uncapped) > 0.1F * uncapped);
}

TEST_CASE("P02 sink logits of every size", "[replay][rules]") {
  TinyLayer layer = small_layer(37);
  // Far below the logits, among them, well above (p around e^-20), and so far above that p is 0.
  layer.rules.sinks = {-50.0F, 1.0F, 20.0F, 300.0F};
  check_equal(layer, mixed_configs());
}

TEST_CASE("P02 a sink so large that probabilities leave the range of the metrics",
          "[replay][rules]") {
  TinyLayer layer = small_layer(42);
  layer.rules.sinks.assign(4, 82.0F);  // p around e^-82 = 2e-36: a float32, but below 1e-30
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

TEST_CASE("keys far below the sinks are still compared with each other", "[replay][rules]") {
  // The first keys lie 45 above all others: e^-45 = 3e-20 is lost beside 1 even in float64, so the
  // mass without sinks must not be a difference of sums.
  TinyLayer layer = tiny_layer({.n_q_heads = 2, .n_kv_heads = 1, .n_tokens = 50}, 43);
  for (Matrix& q : layer.q) {
    q.col(0).setConstant(4.0F);
  }
  layer.rules.scale = 1;
  layer.k[0].col(0).setZero();
  for (const Index sink : {0, 1, 3}) {
    layer.k[0](sink, 0) = 45.0F / 4.0F;
  }
  check_equal(layer, mixed_configs());
}

TEST_CASE("a kept set far below the best key does not underflow", "[replay][rules]") {
  // Key 0 lies 60 or 200 above all others in every row: e^-60 = 9e-27 is still a float32, e^-200 is
  // not, so the softmax over kept keys without key 0 needs a maximum of its own.
  const float peak = GENERATE(60.0F, 200.0F);
  CAPTURE(peak);
  TinyLayer layer =
      tiny_layer({.n_q_heads = 2, .n_kv_heads = 1, .n_tokens = 40, .k_head_dim = 2}, 41);
  for (Matrix& q : layer.q) {
    q.col(0).setConstant(20.0F);
  }
  layer.rules.scale = 1;
  layer.k[0].col(0).setZero();
  layer.k[0](0, 0) = peak / 20.0F;
  const std::vector configs = {config_from("selector=sink_recent budget=5"),
                               config_from("selector=random budget=3 seed=1"),
                               config_from("candidates=cache selector=sink_recent budget=18")};
  const auto results = replay_layer(layer.input(), configs, {});
  const naive::Layer reference = naive::to_layer(layer.input());
  const naive::Dense dense = naive::dense_attention(reference);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    auto expected = naive::replay(reference, dense, {}, configs[i], {}).values[0];
    for (const std::string name : {"out_rel_l2", "out_cos", "out_max_abs"}) {
      for (const std::string suffix : {"_mean", "_p50", "_worst", "_n_valid"}) {
        const Index column = find_cell_column(name + suffix);
        INFO(canonical_text(configs[i]) << " " << name << suffix);
        const double value = static_cast<double>(results[i].values(0, column));
        // An output has an error of 60 or 200 times float32's epsilon, as its logits have.
        CHECK_THAT(value, Catch::Matchers::WithinAbs(expected[name + suffix], 1e-4));
      }
    }
  }
}

}  // namespace quoka::test
