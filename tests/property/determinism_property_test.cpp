// Results depend on nothing but the layer, the configuration and the settings; and all are defined.

#include "reference/compare.hpp"
#include "support/bits.hpp"
#include "support/catch.hpp"

namespace quoka::test {
namespace {

ReplaySettings everything(int n_threads = 1) {
  ReplaySettings settings;
  settings.by_chunk = true;
  settings.selections = true;
  settings.n_threads = n_threads;
  return settings;
}

bool same_result(const CellResult& a, const CellResult& b) {
  bool same = same_bits(a.values, b.values) && a.chunks == b.chunks &&
              a.chunk_values.size() == b.chunk_values.size() && a.kept.size() == b.kept.size();
  for (std::size_t i = 0; same && i < a.chunk_values.size(); ++i) {
    same = same_bits(a.chunk_values[i], b.chunk_values[i]);
  }
  for (std::size_t i = 0; same && i < a.kept.size(); ++i) {
    same = a.kept[i].chunk_begin == b.kept[i].chunk_begin &&
           a.kept[i].kv_head == b.kept[i].kv_head && a.kept[i].key_indices == b.kept[i].key_indices;
  }
  return same;
}

TinyLayer annotated_layer(std::uint64_t seed) {
  TinyLayer layer = tiny_layer({.n_tokens = 150, .q_offset = 3}, seed);
  layer.needles = {{{{100, 153}}, {{10, 14}, {60, 62}}}};
  layer.rules.sinks = {0.5F, 1.0F, 0.0F, 2.0F, -1.0F, 3.0F};
  return layer;
}

}  // namespace

TEST_CASE("P40 any number of threads gives the same bits", "[property][determinism]") {
  const TinyLayer layer = annotated_layer(141);
  const auto configs = mixed_configs();
  const auto one = replay_layer(layer.input(), configs, everything(1));
  for (const int n_threads : {2, 5, 16}) {
    const auto many = replay_layer(layer.input(), configs, everything(n_threads));
    for (std::size_t i = 0; i < configs.size(); ++i) {
      INFO(n_threads << " threads " << canonical_text(configs[i]));
      CHECK(same_result(one[i], many[i]));
    }
  }
}

TEST_CASE("other configurations and their order change no bit", "[property][determinism]") {
  const TinyLayer layer = annotated_layer(142);
  auto configs = mixed_configs();
  const auto extra = mixed_configs("budget=17 seed=3");
  configs.insert(configs.end(), extra.begin(), extra.end());
  const auto together = replay_layer(layer.input(), configs, everything());
  const std::vector<SelectorConfig> backwards(configs.rbegin(), configs.rend());
  const auto reversed = replay_layer(layer.input(), backwards, everything());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    INFO(canonical_text(configs[i]));
    CHECK(same_result(together[i], reversed[configs.size() - 1 - i]));
    const auto alone = replay_layer(layer.input(), std::vector{configs[i]}, everything());
    CHECK(same_result(together[i], alone[0]));
  }
}

TEST_CASE("repeated configurations give repeated results", "[property][determinism]") {
  const std::vector configs = {config_from("budget=5"), config_from("budget=8"),
                               config_from("budget=5")};
  const auto results = replay_layer(annotated_layer(143).input(), configs, everything());
  CHECK(same_result(results[0], results[2]));
  CHECK_FALSE(same_result(results[0], results[1]));
}

TEST_CASE("P40 no state stays from one layer to the next", "[property][determinism]") {
  const auto configs = mixed_configs();
  const auto first = replay_layer(annotated_layer(144).input(), configs, everything());
  replay_layer(tiny_layer({.n_q_heads = 2, .n_kv_heads = 1, .n_tokens = 200}, 145).input(), configs,
               everything());
  const auto again = replay_layer(annotated_layer(144).input(), configs, everything());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    CHECK(same_result(first[i], again[i]));
  }
}

TEST_CASE("random choices change with seed and layer only where they are used",
          "[property][random]") {
  TinyLayer layer = annotated_layer(146);
  const std::vector configs = {config_from("selector=random"), config_from("query_rule=random"),
                               config_from("query_rule=stride")};
  std::vector<SelectorConfig> reseeded = configs;
  for (SelectorConfig& config : reseeded) {
    config.seed = 9;
  }
  const auto base = replay_layer(layer.input(), configs, everything());
  const auto other_seed = replay_layer(layer.input(), reseeded, everything());
  layer.layer_idx = 4;
  const auto other_layer = replay_layer(layer.input(), configs, everything());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    CHECK(same_result(base[i], other_seed[i]) == (i == 2));
    CHECK(same_result(base[i], other_layer[i]) == (i == 2));
  }
}

TEST_CASE("every stored value is finite or has no valid rows", "[property][definedness]") {
  TinyLayer layer = GENERATE(annotated_layer(147), tiny_layer({.n_tokens = 1}, 148),
                             tiny_layer({.n_tokens = 17, .k_head_dim = 1, .v_head_dim = 1}, 149));
  if (GENERATE(false, true)) {
    layer.v[1].setZero();
    layer.k[0].setZero();
  }
  const auto configs = mixed_configs();
  const auto results = replay_layer(layer.input(), configs, everything());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const Matrix& values = results[i].values;
    for (Index head = 0; head < values.rows(); ++head) {
      INFO(canonical_text(configs[i]) << " head " << head);
      for (Index m = 0; m < n_row_metrics; ++m) {
        const auto metric = static_cast<RowMetric>(m);
        const float n_valid = values(head, cell_column(metric, RowStatistic::n_valid));
        for (Index s = 0; s < n_row_statistics - 1; ++s) {
          const float value = values(head, cell_column(metric, static_cast<RowStatistic>(s)));
          CHECK(std::isfinite(value) == (n_valid > 0));
        }
        CHECK(n_valid <= values(head, cell_column(CellCount::n_rows_active)));
      }
      for (Index m = 0; m < n_chunk_metrics; ++m) {
        const auto metric = static_cast<ChunkMetric>(m);
        CHECK(std::isfinite(values(head, cell_column(metric))) ==
              (values(head, cell_column_n_valid(metric)) > 0));
      }
      const bool any = values(head, cell_column(CellCount::n_chunks_active)) > 0;
      for (Index c = 0; c < n_cell_counts; ++c) {
        const auto count = static_cast<CellCount>(c);
        const bool is_mean = count == CellCount::n_candidates || count == CellCount::keys_kept;
        // Where all values are zero there is no relative floor.
        const bool no_floor = count == CellCount::floor_out_rel_l2 &&
                              (layer.v[static_cast<std::size_t>(head / 3)].array() == 0).all();
        CHECK(std::isfinite(values(head, cell_column(count))) == ((any || !is_mean) && !no_floor));
      }
    }
  }
}

TEST_CASE("statistics are ordered and shares lie in 0 to 1", "[property][definedness]") {
  const auto results = replay_layer(annotated_layer(150).input(), mixed_configs(), everything());
  constexpr float rounding = 1e-6F;  // ratios of float64 sums stored as float32
  for (const CellResult& result : results) {
    for (Index head = 0; head < result.values.rows(); ++head) {
      for (Index m = 0; m < n_row_metrics; ++m) {
        const auto metric = static_cast<RowMetric>(m);
        const auto value = [&](RowStatistic s) {
          return result.values(head, cell_column(metric, s));
        };
        CHECK(value(RowStatistic::p01) <= value(RowStatistic::p05));
        CHECK(value(RowStatistic::p05) <= value(RowStatistic::p50));
        CHECK(value(RowStatistic::p50) <= value(RowStatistic::p95));
        CHECK(value(RowStatistic::p95) <= value(RowStatistic::p99));
        const bool higher = better(metric) == Better::higher;
        CHECK((higher ? value(RowStatistic::worst) <= value(RowStatistic::p01)
                      : value(RowStatistic::worst) >= value(RowStatistic::p99)));
      }
      for (const RowMetric metric : {RowMetric::mass_recall, RowMetric::mass_recall_history,
                                     RowMetric::mass_recall_no_sink}) {
        CHECK(result.values(head, cell_column(metric, RowStatistic::p01)) >= 0.0F);
        CHECK(result.values(head, cell_column(metric, RowStatistic::p99)) <= 1.0F + rounding);
      }
      for (const ChunkMetric metric :
           {ChunkMetric::density, ChunkMetric::density_history, ChunkMetric::needle_key_recall,
            ChunkMetric::needle_mass_recall}) {
        const float value = result.values(head, cell_column(metric));
        CHECK(!(value < 0.0F || value > 1.0F + rounding));
      }
    }
  }
}

TEST_CASE("P31 one bad head shows in its own row", "[property][heads]") {
  // Keys grow along channel 0; all heads but one look for large, hence recent, ones.
  TinyLayer layer = tiny_layer({.n_q_heads = 8, .n_kv_heads = 8, .n_tokens = 64}, 151);
  for (std::size_t head = 0; head < 8; ++head) {
    layer.q[head].col(0).setConstant(head == 5 ? -10.0F : 10.0F);
    for (Index row = 0; row < 64; ++row) {
      layer.k[head](row, 0) = 0.3F * static_cast<float>(row);
    }
  }
  const auto result =
      replay_layer(layer.input(), std::vector{config_from("selector=sink_recent budget=8")}, {})[0];
  const Index column = cell_column(RowMetric::mass_recall_history, RowStatistic::mean);
  for (Index head = 0; head < 8; ++head) {
    CAPTURE(head);
    CHECK((result.values(head, column) > 0.9F) == (head != 5));
  }
  CHECK(result.values(5, column) < 0.1F);
}

}  // namespace quoka::test
