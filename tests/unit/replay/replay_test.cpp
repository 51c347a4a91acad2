// The engine against the slow reference: every value of every switch, alone and mixed.

#include "quoka/replay/replay.hpp"

#include "reference/compare.hpp"
#include "support/catch.hpp"

namespace quoka::test {
namespace {

const std::vector<std::string> query_rules = {"lowest_cosine", "highest_cosine", "largest_norm",
                                              "random",        "stride",         "first",
                                              "last",          "farthest_point", "all"};

/// Every n-th point of the full product of the switches of quoka.
std::vector<SelectorConfig> product_sample(std::size_t step) {
  std::vector<std::string> texts = {"selector=quoka"};
  const auto cross = [&texts](const std::string& name, const std::vector<std::string>& values) {
    std::vector<std::string> longer;
    for (const std::string& text : texts) {
      for (const std::string& value : values) {
        longer.push_back(text + " " + name + "=" + value);
      }
    }
    texts = longer;
  };
  cross("query_rule", query_rules);
  cross("query_scope", {"per_head", "per_group"});
  cross("query_mean", {"raw", "normalized"});
  cross("score", {"cosine", "dot", "softmax"});
  cross("pairing", {"rank", "position"});
  cross("head_aggregation", {"mean_first", "mean_after", "max_after"});
  cross("query_aggregation", {"max", "mean"});
  cross("candidates", {"history", "cache"});
  std::vector<SelectorConfig> configs;
  for (std::size_t i = 0; i < texts.size(); i += step) {
    configs.push_back(config_from(texts[i]));
  }
  return configs;
}

}  // namespace

TEST_CASE("the replay equals the reference for every value of every switch", "[replay][switches]") {
  std::vector<SelectorConfig> configs;
  for (const std::string& rule : query_rules) {
    configs.push_back(config_from("query_rule=" + rule));
    configs.push_back(config_from("query_scope=per_group query_rule=" + rule));
  }
  for (const std::string text : {"query_mean=normalized",
                                 "query_mean=normalized query_rule=highest_cosine",
                                 "score=dot",
                                 "score=softmax",
                                 "pairing=position",
                                 "pairing=position query_rule=largest_norm",
                                 "head_aggregation=mean_after",
                                 "head_aggregation=max_after",
                                 "query_aggregation=mean",
                                 "candidates=cache",
                                 "keep_first=3",
                                 "keep_recent=4",
                                 "keep_first=3 keep_recent=4",
                                 "keep_first=20",
                                 "keep_first=5 keep_recent=20",
                                 "seed=5 query_rule=random",
                                 "selector=oracle",
                                 "selector=random",
                                 "selector=random seed=5",
                                 "selector=sink_recent",
                                 "selector=sink_recent keep_first=3",
                                 "selector=sink_recent keep_first=100",
                                 "selector=keydiff",
                                 "selector=keydiff keep_recent=2",
                                 "n_sel_queries=1",
                                 "n_sel_queries=15",
                                 "n_sel_queries=16",
                                 "n_sel_queries=1000",
                                 "chunk_offset=1",
                                 "chunk_offset=15",
                                 "chunk_size=13",
                                 "chunk_size=1000"}) {
    configs.push_back(config_from(text));
  }
  check_equal(tiny_layer({}, 1), configs);
}

TEST_CASE("the replay equals the reference for mixed switches", "[replay][switches]") {
  // 11 has no factor in common with the number of values of any switch, so each pair of values
  // meets.
  check_equal(tiny_layer({.n_tokens = 41}, 2), product_sample(11));
}

TEST_CASE("the replay equals the reference for budgets of every kind", "[replay][budget]") {
  std::vector<SelectorConfig> configs;
  for (const std::string budget :
       {"1", "2", "15", "16", "17", "31", "32", "33", "48", "1000", "0.000001%", "1%", "10%",
        "33.333333%", "50%", "99.999999%", "100%"}) {
    for (const std::string selector : {"quoka", "oracle", "random", "sink_recent", "keydiff"}) {
      configs.push_back(config_from("selector=" + selector + " budget=" + budget));
    }
    configs.push_back(config_from("candidates=cache budget=" + budget));
  }
  check_equal(tiny_layer({}, 3), configs);
}

TEST_CASE("a percentage of 100 is never active", "[replay][budget]") {
  const TinyLayer layer = tiny_layer({}, 4);
  const auto results = replay_layer(layer.input(), std::vector{config_from("budget=100%")}, {});
  for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
    CHECK(results[0].values(head, cell_column(CellCount::n_rows_active)) == 0.0F);
    CHECK(results[0].values(head, cell_column(RowMetric::kl, RowStatistic::n_valid)) == 0.0F);
    CHECK(std::isnan(results[0].values(head, cell_column(RowMetric::kl, RowStatistic::mean))));
    CHECK(std::isnan(results[0].values(head, cell_column(CellCount::keys_kept))));
  }
}

TEST_CASE("chunk values and kept keys are returned only on request", "[replay][results]") {
  const TinyLayer layer = tiny_layer({}, 5);
  const std::vector configs = {config_from("budget=4")};
  const CellResult plain = replay_layer(layer.input(), configs, {})[0];
  CHECK(plain.chunks.empty());
  CHECK(plain.chunk_values.empty());
  CHECK(plain.kept.empty());
  ReplaySettings settings;
  settings.by_chunk = true;
  settings.selections = true;
  const CellResult full = replay_layer(layer.input(), configs, settings)[0];
  CHECK(full.chunks.size() == 4);  // 53 rows in chunks of 16
  CHECK(full.chunk_values.size() == 4);
  CHECK(full.kept.size() == 3 * 2);  // the first chunk has no history; two KV heads
  CHECK((full.values.array() == plain.values.array() || full.values.array().isNaN()).all());
}

TEST_CASE("kept keys come by chunk and then by KV head", "[replay][results]") {
  ReplaySettings settings;
  settings.selections = true;
  const auto kept =
      replay_layer(tiny_layer({}, 5).input(), std::vector{config_from("budget=4")}, settings)[0]
          .kept;
  REQUIRE(kept.size() == 3 * 2);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CAPTURE(i);
    CHECK(kept[i].chunk_begin == static_cast<Index>(16 * (1 + i / 2)));
    CHECK(kept[i].kv_head == static_cast<Index>(i % 2));
  }
}

TEST_CASE("the float32 floor is far below every error and not zero", "[replay][floor]") {
  const TinyLayer layer = tiny_layer({.n_tokens = 100}, 6);
  const CellResult result =
      replay_layer(layer.input(), std::vector{config_from("budget=4")}, {})[0];
  for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
    const float floor = result.values(head, cell_column(CellCount::floor_out_rel_l2));
    CHECK(floor > 1e-9F);  // float32 rounding is 6e-8
    CHECK(floor < 1e-5F);
  }
}

}  // namespace quoka::test
