// Budgets: nested, never better than the oracle, dense when they suffice.

#include "reference/compare.hpp"
#include "support/catch.hpp"

namespace quoka::test {
namespace {

constexpr Index state_column = n_row_metrics + n_chunk_metrics + 3;
constexpr Index kept_column = n_row_metrics + n_chunk_metrics + 2;

ReplaySettings everything() {
  ReplaySettings settings;
  settings.by_chunk = true;
  settings.selections = true;
  return settings;
}

/// Every selector and scoring that orders candidates differently.
const std::vector<std::string> orders = {"selector=quoka",
                                         "score=dot",
                                         "score=softmax query_rule=last",
                                         "query_rule=random head_aggregation=max_after",
                                         "keep_first=2 keep_recent=3",
                                         "selector=oracle",
                                         "selector=random",
                                         "selector=sink_recent keep_first=3",
                                         "selector=keydiff",
                                         "selector=keydiff keep_recent=4",
                                         "candidates=cache",
                                         "candidates=cache selector=random keep_first=1"};

double statistic(const CellResult& result, Index head, RowMetric metric) {
  return static_cast<double>(result.values(head, cell_column(metric, RowStatistic::mean)));
}

double chunk_metric(const CellResult& result, Index head, ChunkMetric metric) {
  return static_cast<double>(result.values(head, cell_column(metric)));
}

}  // namespace

TEST_CASE("P22 P31 nested budgets keep nested sets with non-decreasing pooled mass",
          "[property][budget]") {
  const TinyLayer layer = tiny_layer({.n_tokens = 41}, 121);
  for (const std::string& order : orders) {
    const bool cache = order.find("cache") != std::string::npos;
    std::vector<SelectorConfig> configs;
    for (int budget = 1; budget < 32; ++budget) {
      configs.push_back(config_from(order + " budget=" + std::to_string(budget)));
    }
    const auto results = replay_layer(layer.input(), configs, everything());
    for (std::size_t i = 1; i < results.size(); ++i) {
      for (const KeptKeys& more : results[i].kept) {
        INFO(order << " budget " << i + 1 << " chunk at " << more.chunk_begin);
        const auto found = std::find_if(
            results[i - 1].kept.begin(), results[i - 1].kept.end(), [&](const KeptKeys& less) {
              return less.chunk_begin == more.chunk_begin && less.kv_head == more.kv_head;
            });
        REQUIRE(found != results[i - 1].kept.end());
        CHECK(more.key_indices.size() == i + 1);
        CHECK(std::includes(more.key_indices.begin(), more.key_indices.end(),
                            found->key_indices.begin(), found->key_indices.end()));
      }
      for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
        // Below the first history of 16 the active rows are the same, so the recall of every row
        // can only grow. With candidates = cache fewer rows are empty as the budget grows.
        if (i + 1 < 16 && !cache) {
          CHECK(statistic(results[i], head, RowMetric::mass_recall) >=
                statistic(results[i - 1], head, RowMetric::mass_recall) - 1e-6);
        }
      }
    }
  }
}

TEST_CASE("P15 a budget of the history or more is dense and says why", "[property][budget]") {
  const TinyLayer layer = tiny_layer({.n_tokens = 64}, 122);
  for (const std::string& order : orders) {
    const bool cache = order.find("cache") != std::string::npos;
    const Index own = cache ? 16 : 0;
    for (const Index spare : {-1, 0, 1}) {  // against the last chunk's 48 history keys
      const auto result = replay_layer(
          layer.input(),
          std::vector{config_from(order + " budget=" + std::to_string(48 + own + spare))},
          everything())[0];
      INFO(order << " spare " << spare);
      for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
        const bool active = spare < 0;
        CHECK(result.values(head, cell_column(CellCount::n_chunks_active)) ==
              (active ? 1.0F : 0.0F));
        CHECK(result.chunk_values[3](head, state_column) == (active ? 0.0F : 1.0F));
        CHECK(result.chunk_values[3](head, kept_column) ==
              static_cast<float>(48 + own + std::min<Index>(spare, 0)));
        CHECK(result.values(head, cell_column(RowMetric::kl, RowStatistic::n_valid)) ==
              (active ? 16.0F : 0.0F));
        CHECK(result.chunk_values[2](head, state_column) == 1.0F);
        // density: last of the chunk's columns to be 1 where everything is kept
        CHECK(result.chunk_values[2](head, n_row_metrics + 3) == 1.0F);
      }
    }
  }
}

TEST_CASE("P16 the first chunk has no history and is never active", "[property][budget]") {
  const TinyLayer layer = tiny_layer({.n_tokens = 16}, 123);
  for (const std::string budget : {"1", "40%", "0.000001%"}) {
    const auto result =
        replay_layer(layer.input(), std::vector{config_from("budget=" + budget)}, everything())[0];
    CHECK(result.kept.empty());
    CHECK(result.values(0, cell_column(CellCount::n_rows_active)) == 0.0F);
    CHECK(result.values(0, cell_column(CellCount::n_rows)) == 16.0F);
  }
}

TEST_CASE("no selector of the same size beats the oracle", "[property][oracle]") {
  const TinyLayer layer = tiny_layer({.n_tokens = 90}, 124);
  for (const int budget : {1, 5, 12}) {
    std::vector<SelectorConfig> configs;
    for (const std::string& order : orders) {
      configs.push_back(config_from(order + " budget=" + std::to_string(budget)));
    }
    const auto results = replay_layer(layer.input(), configs, everything());
    for (std::size_t i = 0; i < configs.size(); ++i) {
      INFO(canonical_text(configs[i]));
      const bool is_oracle = configs[i].selector == SelectorKind::oracle;
      for (const Matrix& chunk : results[i].chunk_values) {
        for (Index head = 0; head < chunk.rows(); ++head) {
          if (chunk(head, state_column) == 0.0F) {
            const float oracle_ratio = chunk(head, n_row_metrics);
            const float overlap = chunk(head, n_row_metrics + 1);
            // Both sums are of the same float32 probabilities in float64.
            CHECK(oracle_ratio <= 1.0F + 1e-6F);
            CHECK(oracle_ratio >= 0.0F);
            CHECK(overlap <= 1.0F);
            CHECK((!is_oracle || (oracle_ratio == 1.0F && overlap == 1.0F)));
          }
        }
      }
    }
  }
}

TEST_CASE("random is below the oracle and below dense-guided scores on average",
          "[property][oracle]") {
  const TinyLayer layer = tiny_layer({.n_tokens = 150}, 125);
  constexpr int n_seeds = 20;
  std::vector configs = {config_from("selector=oracle"),
                         config_from("score=softmax query_rule=all query_aggregation=mean")};
  for (int seed = 0; seed < n_seeds; ++seed) {
    configs.push_back(config_from("selector=random seed=" + std::to_string(seed)));
  }
  const auto results = replay_layer(layer.input(), configs, {});
  for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
    double random = 0;
    for (std::size_t i = 2; i < results.size(); ++i) {
      random += chunk_metric(results[i], head, ChunkMetric::oracle_ratio) / n_seeds;
    }
    CHECK(random < 0.9 * chunk_metric(results[0], head, ChunkMetric::oracle_ratio));
    // The mean over all rows' probabilities orders as the oracle does (one is the other times C g).
    CHECK_THAT(chunk_metric(results[1], head, ChunkMetric::oracle_ratio),
               Catch::Matchers::WithinAbs(1.0, 1e-6));
  }
}

TEST_CASE("a random set has the expected overlap with the oracle", "[property][random]") {
  // Overlap of a random 9 of n candidates is 9 / n on average: chunks have 16, 32, 48, ... 144.
  const TinyLayer layer = tiny_layer({.n_q_heads = 8, .n_kv_heads = 8, .n_tokens = 160}, 126);
  std::vector<SelectorConfig> configs;
  constexpr int n_seeds = 30;
  for (int seed = 0; seed < n_seeds; ++seed) {
    configs.push_back(config_from("selector=random seed=" + std::to_string(seed)));
  }
  double overlap = 0;
  for (const CellResult& result : replay_layer(layer.input(), configs, {})) {
    for (Index head = 0; head < 8; ++head) {
      overlap += chunk_metric(result, head, ChunkMetric::topk_overlap) / (8 * n_seeds);
    }
  }
  double expected = 0;
  double variance = 0;
  for (int n = 16; n <= 144; n += 16) {
    const double share = 9.0 / n;
    expected += share / 9;
    // hypergeometric: 9 drawn of n with 9 marked, as a share of 9, over 9 chunks, 8 heads and seeds
    variance += share * (1 - share) * (n - 9) / (n - 1) / 9 / (81.0 * 8 * n_seeds);
  }
  CHECK_THAT(overlap, Catch::Matchers::WithinAbs(expected, 5 * std::sqrt(variance)));
}

TEST_CASE("averaging heads before or after the product is equal before the max",
          "[property][aggregation]") {
  const TinyLayer layer = tiny_layer({.n_tokens = 60}, 127);
  for (const std::string score : {"cosine", "dot", "softmax"}) {
    for (const std::string rest : {"query_aggregation=mean", "n_sel_queries=1"}) {
      const std::string text = "budget=7 score=" + score + " " + rest + " head_aggregation=";
      const auto results = replay_layer(
          layer.input(),
          std::vector{config_from(text + "mean_first"), config_from(text + "mean_after")},
          everything());
      for (std::size_t i = 0; i < results[0].kept.size(); ++i) {
        INFO(text << " set " << i);
        CHECK(results[0].kept[i].key_indices == results[1].kept[i].key_indices);
      }
    }
  }
}

TEST_CASE("P03 sinks lost at the budget show in the recalls with and without them",
          "[property][sinks]") {
  // The first four keys share one long direction that every query has a little of: a large logit, a
  // small cosine to the kept queries.
  TinyLayer layer = tiny_layer({.n_tokens = 64, .k_head_dim = 16}, 128);
  for (Matrix& q : layer.q) {
    q.col(0).setConstant(0.3F);  // of a norm of about 9: cosine 0.03
  }
  for (Matrix& k : layer.k) {
    k.col(0).setConstant(0.0F);
    k.topRows(4).setZero();
    k.topRows(4).col(0).setConstant(150.0F);  // logit 0.3 * 150 / 4 = 11, others about 1
  }
  const auto results =
      replay_layer(layer.input(),
                   std::vector{config_from("budget=32"), config_from("budget=32 keep_first=4"),
                               config_from("budget=31")},
                   everything());
  for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
    const auto mean_of = [&](std::size_t i, std::size_t chunk, RowMetric metric) {
      return results[i].chunk_values[chunk](head, static_cast<Index>(metric));
    };
    // 32 history keys fit in 32 and not in 31; 48 do not fit.
    CHECK(results[0].chunk_values[2](head, state_column) == 1.0F);
    CHECK(results[2].chunk_values[2](head, state_column) == 0.0F);
    CHECK(results[0].chunk_values[3](head, state_column) == 0.0F);
    CHECK(mean_of(1, 3, RowMetric::mass_recall_history) > 0.9F);
    CHECK(mean_of(0, 3, RowMetric::mass_recall_history) <
          mean_of(1, 3, RowMetric::mass_recall_history) - 0.05F);
    CHECK(std::abs(mean_of(0, 3, RowMetric::mass_recall_no_sink) -
                   mean_of(1, 3, RowMetric::mass_recall_no_sink)) < 0.3F);
    CHECK(results[0].values(head, cell_column(CellCount::sink_mass)) > 0.5F);
  }
}

}  // namespace quoka::test
