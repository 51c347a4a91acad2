// The engine against the slow reference where vectors vanish, scores tie, rows are empty or
// annotated.

#include "quoka/core/error.hpp"
#include "quoka/replay/replay.hpp"
#include "reference/compare.hpp"
#include "support/catch.hpp"

namespace quoka::test {
namespace {

float count_of(const CellResult& result, CellCount count, Index head = 0) {
  return result.values(head, cell_column(count));
}

/// Whole numbers from -2 to 2: every product and sum is exact in float32, so equal scores are
/// equal.
void make_whole(Matrix& matrix) { matrix = (matrix.array() * 2.0F).round().matrix(); }

}  // namespace

TEST_CASE("zero queries and zero keys are counted and have cosine 0", "[replay][edges]") {
  TinyLayer layer = tiny_layer({}, 51);
  for (const Index row : {0, 5, 20, 21, 52}) {
    layer.q[1].row(row).setZero();
  }
  for (const Index row : {0, 3, 17, 30}) {
    layer.k[0].row(row).setZero();
  }
  check_equal(layer, mixed_configs());
  const auto result = replay_layer(layer.input(), std::vector{config_from("budget=4")}, {})[0];
  CHECK(count_of(result, CellCount::n_zero_queries, 0) == 0.0F);
  CHECK(count_of(result, CellCount::n_zero_queries, 1) == 5.0F);
  CHECK(count_of(result, CellCount::n_zero_keys, 2) == 4.0F);
  CHECK(count_of(result, CellCount::n_zero_keys, 3) == 0.0F);
}

TEST_CASE("a zero mean query makes every similarity 0 and is counted", "[replay][edges]") {
  // Rows come in pairs x and -x, so that the mean of raw and of unit rows is exactly 0.
  TinyLayer layer = tiny_layer({.n_tokens = 48}, 52);
  make_whole(layer.q[2]);
  for (Index row = 0; row < 48; row += 2) {
    layer.q[2].row(row + 1) = -layer.q[2].row(row);
  }
  std::vector<SelectorConfig> configs;
  for (const std::string rule :
       {"lowest_cosine", "highest_cosine", "farthest_point", "largest_norm", "stride", "all"}) {
    configs.push_back(config_from("query_rule=" + rule));
  }
  configs.push_back(config_from("n_sel_queries=16"));
  configs.push_back(config_from("query_mean=normalized"));
  check_equal(layer, configs);
  const auto results = replay_layer(layer.input(), configs, {});
  CHECK(count_of(results[0], CellCount::n_zero_means, 2) == 3.0F);
  CHECK(count_of(results[0], CellCount::n_zero_means, 1) == 0.0F);
  CHECK(count_of(results[3], CellCount::n_zero_means, 2) == 0.0F);  // largest_norm uses no mean
  CHECK(count_of(results[6], CellCount::n_zero_means, 2) == 0.0F);  // nothing to sub-select
  CHECK(count_of(results[7], CellCount::n_zero_means, 2) == 3.0F);
}

TEST_CASE("a layer of zeros gives uniform attention and no undefined number", "[replay][edges]") {
  TinyLayer layer = tiny_layer({.n_tokens = 40}, 53);
  for (Matrix& q : layer.q) {
    q.setZero();
  }
  for (Matrix& k : layer.k) {
    k.setZero();
  }
  check_equal(layer, mixed_configs());
}

TEST_CASE("zero values leave the relative error and the cosine out", "[replay][edges]") {
  TinyLayer layer = tiny_layer({.n_tokens = 40}, 54);
  layer.v[1].setZero();
  check_equal(layer, mixed_configs());
  const auto result = replay_layer(layer.input(), std::vector{config_from("budget=4")}, {})[0];
  CHECK(result.values(5, cell_column(RowMetric::out_rel_l2, RowStatistic::n_valid)) == 0.0F);
  CHECK(std::isnan(result.values(5, cell_column(RowMetric::out_cos, RowStatistic::worst))));
  CHECK(result.values(5, cell_column(RowMetric::out_max_abs, RowStatistic::worst)) == 0.0F);
}

TEST_CASE("P22 equal scores keep the lower position", "[replay][ties]") {
  // Three keys of different length repeat. Whole numbers and means over four heads are exact, so
  // products that are equal for different keys tie in float32 as in float64.
  TinyLayer layer =
      tiny_layer({.n_q_heads = 8, .n_kv_heads = 2, .n_tokens = 50, .k_head_dim = 4}, 55);
  Matrix kinds(3, 4);
  kinds << 3, 1, 0, 0, 0, -1, 2, 1, 1, 1, 1, -4;
  for (Matrix& k : layer.k) {
    for (Index row = 0; row < 50; ++row) {
      k.row(row) = kinds.row(row % 3);
    }
  }
  for (Matrix& q : layer.q) {
    make_whole(q);
  }
  check_equal(
      layer,
      {config_from("score=dot query_rule=all"), config_from("score=dot query_rule=all budget=17"),
       config_from("score=dot query_rule=stride head_aggregation=max_after"),
       config_from("score=dot query_rule=first keep_first=2 keep_recent=2"),
       config_from("score=cosine query_rule=stride"),
       config_from("score=cosine query_rule=last budget=17"), config_from("selector=oracle"),
       config_from("score=softmax query_rule=last budget=17"),
       config_from("selector=keydiff budget=7")});
}

TEST_CASE("P22 identical random keys tie exactly", "[replay][ties]") {
  // Not whole numbers: a kernel that sums columns in different orders would break the ties.
  TinyLayer layer = tiny_layer({.n_tokens = 61, .k_head_dim = 19}, 56);
  for (Matrix& k : layer.k) {
    for (Index row = 1; row < 61; ++row) {
      k.row(row) = k.row(0);
    }
  }
  ReplaySettings settings;
  settings.selections = true;
  const std::vector configs = {config_from("score=cosine"),
                               config_from("score=dot"),
                               config_from("score=dot head_aggregation=mean_after"),
                               config_from("score=cosine head_aggregation=max_after"),
                               config_from("score=softmax query_rule=last"),
                               config_from("query_rule=all query_aggregation=mean"),
                               config_from("selector=oracle"),
                               config_from("selector=keydiff")};
  const auto results = replay_layer(layer.input(), configs, settings);
  std::vector<std::int32_t> lowest(9);
  std::iota(lowest.begin(), lowest.end(), 0);
  for (std::size_t i = 0; i < configs.size(); ++i) {
    for (const KeptKeys& kept : results[i].kept) {
      INFO(canonical_text(configs[i]) << " chunk at " << kept.chunk_begin);
      CHECK(kept.key_indices == lowest);
      CHECK(kept.cut_margin == 0.0F);
    }
  }
}

TEST_CASE("P22 of identical keys the lower positions are kept", "[replay][ties]") {
  // Three distinct random keys repeat. Whatever the scores, the kept keys of each kind must be its
  // first.
  const std::string text =
      GENERATE("score=cosine", "score=dot", "score=dot query_aggregation=mean", "score=softmax",
               "score=softmax head_aggregation=max_after", "selector=oracle", "selector=keydiff",
               "score=dot head_aggregation=mean_after", "query_rule=all", "query_rule=random");
  const Index k_head_dim = GENERATE(4, 19, 64);
  CAPTURE(text, k_head_dim);
  constexpr Index n_tokens = 301;
  TinyLayer layer = tiny_layer({.n_tokens = n_tokens, .k_head_dim = k_head_dim}, 67);
  for (Matrix& k : layer.k) {
    for (Index row = 3; row < n_tokens; ++row) {
      k.row(row) = k.row(row % 3);
    }
  }
  ReplaySettings settings;
  settings.selections = true;
  const std::vector configs = {config_from(text), config_from(text + " budget=20"),
                               config_from(text + " chunk_size=128 budget=50")};
  int n_wrong = 0;
  for (const CellResult& result : replay_layer(layer.input(), configs, settings)) {
    for (const KeptKeys& kept : result.kept) {
      std::vector<std::int32_t> seen = {0, 0, 0};
      for (const std::int32_t key : kept.key_indices) {
        n_wrong += key / 3 == seen[static_cast<std::size_t>(key % 3)]++ ? 0 : 1;
      }
    }
  }
  CHECK(n_wrong == 0);
}

TEST_CASE("P22 identical queries keep the lower rows", "[replay][ties]") {
  TinyLayer layer = tiny_layer({.n_tokens = 50, .k_head_dim = 4}, 57);
  for (Matrix& q : layer.q) {
    make_whole(q);
    for (Index row = 4; row < 50; ++row) {
      q.row(row) = q.row(row % 4);
    }
  }
  check_equal(layer,
              {config_from("query_rule=lowest_cosine"), config_from("query_rule=highest_cosine"),
               config_from("query_rule=largest_norm"),
               config_from("query_rule=largest_norm query_scope=per_group"),
               config_from("query_rule=farthest_point n_sel_queries=3")});
}

TEST_CASE("P23 forced keys and best keys overlap without duplicates", "[replay][forced]") {
  TinyLayer layer = tiny_layer({}, 58);
  for (Matrix& k : layer.k) {
    k.rowwise() = k.row(0).eval();
  }
  ReplaySettings settings;
  settings.selections = true;
  const auto result = replay_layer(
      layer.input(), std::vector{config_from("keep_first=2 keep_recent=3 budget=7")}, settings)[0];
  REQUIRE(result.kept.size() == 3 * 2);
  const std::vector<std::int32_t> expected = {0, 1, 2, 3, 13, 14, 15};  // then 2 and 3 by position
  CHECK(result.kept[0].key_indices == expected);
}

TEST_CASE("rows without a visible kept key are empty", "[replay][empty]") {
  TinyLayer layer = tiny_layer({}, 59);
  layer.needles = {{{{20, 53}}, {{2, 6}, {8, 9}}}};
  std::vector<SelectorConfig> configs;
  for (const std::string selector : {"quoka", "oracle", "random", "keydiff"}) {
    configs.push_back(config_from("candidates=cache budget=1 selector=" + selector));
    configs.push_back(config_from("candidates=cache budget=2 selector=" + selector));
  }
  configs.push_back(config_from("candidates=cache budget=1 selector=sink_recent"));
  check_equal(layer, configs);
  const auto result = replay_layer(layer.input(), configs, {}).back();
  // The most recent key is each chunk's last: only the last of its rows sees it (chunks 16 16 16
  // 5).
  CHECK(count_of(result, CellCount::n_rows_active) == 53.0F);
  CHECK(count_of(result, CellCount::n_empty_rows) == 49.0F);
}

TEST_CASE("needle metrics follow spans in the history that a question row sees",
          "[replay][needles]") {
  TinyLayer layer = tiny_layer({.n_tokens = 60, .q_offset = 4}, 60);
  const Index window = GENERATE(0, 25);
  layer.rules.sliding_window = window;
  layer.needles = {
      {{{40, 44}, {50, 64}}, {{2, 6}, {20, 21}, {30, 39}}},  // chunk borders at 4, 20, 36, 52
      {{{30, 36}}, {{0, 3}, {29, 33}, {35, 36}}},            // inside the chunk, then never asked
      {{{0, 10}}, {{50, 60}}},                               // needle after its question
      {{}, {{1, 2}}}};
  check_equal(layer, mixed_configs());
  check_equal(layer, mixed_configs("budget=2"));
}

TEST_CASE("min_history and sink_size are constants of every metric", "[replay][settings]") {
  TinyLayer layer = tiny_layer({.n_tokens = 60, .q_offset = 4}, 61);
  layer.rules.sliding_window = GENERATE(0, 18);
  ReplaySettings settings;
  settings.min_history = GENERATE(0, 20, 21, 1000);
  settings.sink_size = GENERATE(0, 1, 4, 33, 1000);
  CAPTURE(settings.min_history, settings.sink_size);
  check_equal(layer,
              {config_from("budget=5"), config_from("selector=oracle budget=12"),
               config_from("candidates=cache budget=6"), config_from("chunk_offset=3 budget=25%"),
               config_from("budget=1"), config_from("selector=random budget=8")},
              settings);
}

TEST_CASE("an error of the loader or of progress ends the replay", "[replay][errors]") {
  TinyLayer layer = tiny_layer({}, 62);
  const std::vector configs = {config_from("budget=4")};
  LayerInput broken = layer.input();
  broken.load_group = [](Index) -> HeadGroup { throw FormatError("q holds NaN at token 7"); };
  CHECK_THROWS_AS(replay_layer(broken, configs, {}), FormatError);
  ReplaySettings settings;
  settings.n_threads = 2;
  CHECK_THROWS_AS(
      replay_layer(layer.input(), configs, settings, [](double) { throw Interrupted("stopped"); }),
      Interrupted);
}

TEST_CASE("progress rises to 1", "[replay][progress]") {
  std::vector<double> seen;
  replay_layer(tiny_layer({}, 63).input(), std::vector{config_from("budget=4")}, {},
               [&seen](double done) { seen.push_back(done); });
  REQUIRE(!seen.empty());
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(seen.front() >= 0.0);
  CHECK(seen.back() == 1.0);
}

TEST_CASE("values that do not fit together are refused", "[replay][errors]") {
  SelectorConfig config = config_from("budget=4");
  config.chunk_offset = 16;
  CHECK_THROWS_AS(replay_layer(tiny_layer({}, 64).input(), std::vector{config}, {}), ConfigError);
}

TEST_CASE("products that overflow float32 are refused", "[replay][errors]") {
  TinyLayer layer = tiny_layer({.n_tokens = 40}, 65);
  layer.q[0].row(7).setConstant(1e30F);
  layer.k[0].row(3).setConstant(1e30F);
  CHECK_THROWS_AS(replay_layer(layer.input(), std::vector{config_from("budget=4")}, {}),
                  FormatError);
}

TEST_CASE("no configuration gives no result", "[replay][edges]") {
  CHECK(replay_layer(tiny_layer({}, 66).input(), std::vector<SelectorConfig>{}, {}).empty());
}

TEST_CASE("memory is linear in the number of keys", "[replay][memory]") {
  const std::vector configs = {config_from("budget=64"), config_from("selector=oracle")};
  const auto bytes = [&](Index n_tokens) {
    const AttentionShape shape{8, 2, n_tokens, n_tokens, 64, 64};
    return static_cast<double>(replay_bytes(shape, configs, {}));
  };
  // Doubling the tokens at most doubles the memory (whatever is constant makes it less).
  CHECK(bytes(16384) < 2.01 * bytes(8192));
  CHECK(bytes(16384) > 1.2 * bytes(8192));
  const AttentionShape small{8, 2, 8192, 8192, 64, 64};
  const AttentionShape large{8, 2, 16384, 16384, 64, 64};
  const double growth = replay_flops(large, configs) / replay_flops(small, configs);
  CHECK(growth > 3.5);  // T squared
  CHECK(growth < 4.1);
}

}  // namespace quoka::test
