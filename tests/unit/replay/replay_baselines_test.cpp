#include "quoka/core/error.hpp"
#include "reference/compare.hpp"
#include "support/catch.hpp"
#include "support/tiny_layer.hpp"

using namespace quoka;
using namespace quoka::test;

namespace {

/// Every compared method with its parameters; layers of tiny_layer have index 3.
std::vector<SelectorConfig> baseline_configs(const std::string& added = "") {
  std::vector<SelectorConfig> configs;
  for (const std::string base :
       {"selector=snapkv budget=9", "selector=snapkv budget=3 observation_window=4 pool_size=1",
        "selector=snapkv budget=25% observation_window=1 pool_size=9",
        "selector=snapkv candidates=cache budget=11", "selector=sample_attention budget=9",
        "selector=sample_attention budget=5 n_sel_queries=3 keep_recent=2",
        "selector=sparq budget=9", "selector=sparq budget=9 n_channels=1",
        "selector=sparq budget=20 n_channels=5 candidates=cache keep_first=1",
        "selector=sparq n_channels=100% budget=7", "selector=loki budget=9",
        "selector=loki budget=6 n_channels=3", "selector=loki n_channels=100% budget=7",
        "selector=less_is_more source_layer=3 budget=9",
        "selector=less_is_more source_layer=3 candidates=cache budget=9 keep_recent=3"}) {
    configs.push_back(config_from(base + " " + added));
  }
  return configs;
}

}  // namespace

TEST_CASE("compared methods equal the reference for any group size", "[replay][baselines]") {
  check_equal(tiny_layer({}, 101), baseline_configs());
  check_equal(tiny_layer({.n_q_heads = 2, .n_kv_heads = 2, .n_tokens = 41}, 102),
              baseline_configs("chunk_size=7"));
  check_equal(tiny_layer({.n_q_heads = 7, .n_kv_heads = 1, .n_tokens = 33, .q_offset = 20}, 103),
              baseline_configs("chunk_size=10"));
}

TEST_CASE("compared methods equal the reference under every softmax rule", "[replay][baselines]") {
  TinyLayer layer = tiny_layer({}, 104);
  SECTION("window") { layer.rules.sliding_window = 21; }
  SECTION("attention chunk") { layer.rules.attention_chunk = 30; }
  SECTION("softcap") { layer.rules.softcap = 1.5; }
  SECTION("sinks") { layer.rules.sinks = {0.5F, 2, -1, 0, 3, 1}; }
  SECTION("alibi") {
    layer.rules.alibi = Alibi::plain;
    layer.rules.alibi_slopes = {0.1F, 0.2F, 0.05F, 0.3F, 0.02F, 0.4F};
  }
  // SparQ sees no bias and no cap in the reference, which is written from its paper.
  std::vector<SelectorConfig> configs;
  for (const SelectorConfig& config : baseline_configs()) {
    const bool has_bias = layer.rules.alibi != Alibi::none || layer.rules.softcap > 0;
    if (config.selector != SelectorKind::sparq || !has_bias) {
      configs.push_back(config);
    }
  }
  check_equal(layer, configs);
}

TEST_CASE("the set of another layer is used by less is more", "[replay][baselines]") {
  const TinyLayer source = tiny_layer({}, 105);
  TinyLayer layer = tiny_layer({}, 106);
  layer.layer_idx = 8;
  LayerInput input = layer.input();
  input.other_layer = [&source](Index layer_idx) {
    require<ConfigError>(layer_idx == 3, "no layer {}", layer_idx);
    return source.input();
  };
  ReplaySettings settings;
  settings.selections = true;
  const std::vector configs{config_from("selector=less_is_more source_layer=3 budget=9")};

  const auto own = replay_layer(source.input(), configs, settings)[0].kept;
  const auto reused = replay_layer(input, configs, settings)[0].kept;
  REQUIRE(own.size() == reused.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    CHECK(own[i].key_indices == reused[i].key_indices);
    CHECK(own[i].key_indices == own[i - i % 2].key_indices);  // one set for all KV heads
  }
  CHECK_THROWS_AS(
      replay_layer(input, std::vector{config_from("selector=less_is_more source_layer=5")}, {}),
      ConfigError);
  CHECK_THROWS_AS(
      replay_layer(layer.input(), std::vector{config_from("selector=less_is_more source_layer=3")},
                   {}),
      ConfigError);
}
