#include <fmt/format.h>

#include <array>

#include "quoka_bench/bench_layer.hpp"
#include "quoka_bench/benches.hpp"

namespace quoka::apps {
namespace {

constexpr std::array<Index, 5> five_budgets{64, 128, 256, 512, 1024};
constexpr std::array<Index, 10> ten_budgets{64, 96, 128, 192, 256, 384, 512, 640, 768, 1024};
constexpr std::array<Index, 5> smallest_budgets{1, 2, 3, 4, 5};

/// Every combination of 5 sizes, 2 scores and 2 aggregations, and of these query rules.
/// scripts/bench_pytorch.py has the same 20 settings of the first rule.
std::vector<SelectorConfig> settings(const std::vector<QueryRule>& rules) {
  std::vector<SelectorConfig> made;
  for (const QueryRule rule : rules) {
    for (const Index n_sel_queries : {4, 8, 16, 32, 64}) {
      for (const Score score : {Score::cosine, Score::dot}) {
        for (const QueryAggregation aggregation : {QueryAggregation::max, QueryAggregation::mean}) {
          SelectorConfig config;
          config.query_rule = rule;
          config.n_sel_queries = n_sel_queries;
          config.score = score;
          config.query_aggregation = aggregation;
          made.push_back(config);
        }
      }
    }
  }
  return made;
}

template <typename Budgets>
std::vector<SelectorConfig> with_budgets(const std::vector<SelectorConfig>& settings,
                                         const Budgets& budgets) {
  std::vector<SelectorConfig> made;
  for (SelectorConfig config : settings) {
    for (const Index keys : budgets) {
      config.budget = Budget::from_keys(keys);
      made.push_back(config);
    }
  }
  return made;
}

struct Grid {
  std::string label;
  std::vector<SelectorConfig> configs;
};

/// The first four serve to split the time of the fourth: they differ in one part of the work each.
std::vector<Grid> grids(Index n_keys, bool with_large) {
  const std::vector<SelectorConfig> one{SelectorConfig()};
  const std::vector<SelectorConfig> twenty = settings({QueryRule::lowest_cosine});
  std::vector<Grid> made{
      {"dense only", with_budgets(one, std::array{n_keys})},  // no chunk has more candidates
      {"20 settings 1 key", with_budgets(twenty, std::array<Index, 1>{1})},
      {"20 settings 5 budgets of 1 to 5 keys", with_budgets(twenty, smallest_budgets)},
      {"20 settings 5 budgets", with_budgets(twenty, five_budgets)},
      {"20 settings 10 budgets", with_budgets(twenty, ten_budgets)},
      {"1 setting 5 budgets", with_budgets(one, five_budgets)}};
  if (with_large) {
    made.push_back(
        {"100 settings 10 budgets",
         with_budgets(settings({QueryRule::lowest_cosine, QueryRule::highest_cosine,
                                QueryRule::largest_norm, QueryRule::random, QueryRule::stride}),
                      ten_budgets)});
  }
  return made;
}

/// Where the time of 20 settings with 5 budgets goes, from the differences between grids.
void report_parts(Report& report, const std::vector<Samples>& samples) {
  const double dense = median(samples[0]);
  const double one_key = median(samples[1]);
  const double few_keys = median(samples[2]);
  const double whole = median(samples[3]);
  const double statistics = (few_keys - one_key) / 80 * 100;  // 80 more configurations; 100 in all
  const double selection = one_key - dense - statistics / 5;
  const double sparse = whole - few_keys;
  const auto set = [&](const std::string& name, double seconds, const std::string& meaning) {
    report.set_fact({name + "_share", "1", "share of 20 settings 5 budgets: " + meaning},
                    seconds / whole);
  };
  set("dense", dense, "dense attention and what all configurations are compared with");
  set("selection", selection, "scores, key orders, ranks of the oracle");
  set("sparse", sparse, "columns of the kept keys and sparse outputs");
  set("statistics", statistics, "row metrics and their statistics");
}

}  // namespace

Report bench_sweep(const BenchOptions& options) {
  const BenchLayer layer = options.capture.empty() ? BenchLayer(options, options.head_dims.front(),
                                                                options.n_tokens.front())
                                                   : BenchLayer(options);
  const LayerInput input = layer.replay_input();
  const ReplaySettings replay_settings{.n_threads = options.n_threads};
  const std::vector<Grid> measured = grids(layer.shape().n_keys, options.large_grid);

  std::vector<std::function<void()>> tasks;
  for (const Grid& grid : measured) {
    tasks.emplace_back([&input, &grid, &replay_settings] {
      static_cast<void>(replay_layer(input, grid.configs, replay_settings));
    });
  }
  const std::vector<Samples> samples =
      measure_in_turn(tasks, options.warm_ups, options.repetitions);

  Report report("sweep");
  const AttentionShape& shape = layer.shape();
  report.set_setting("layer", layer.source());
  report.set_setting("size", fmt::format("{} tokens, heads {}:{}, head_dim {}", shape.n_tokens,
                                         shape.n_q_heads, shape.n_kv_heads, shape.k_head_dim));
  report.set_setting("threads", fmt::format("{}", options.n_threads));
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const auto n_configs = static_cast<double>(measured[i].configs.size());
    const double seconds = median(samples[i]);
    report.begin_case(measured[i].label);
    report.set({"n_configs", "1", "configurations"}, n_configs);
    report.set_times("time", "replay of the layer", samples[i]);
    report.set({"units_per_second", "s-1", "layers per second"}, 1 / seconds);
    report.set({"configs_per_second", "s-1", "configurations of one layer per second"},
               n_configs / seconds);
    report.set({"times_dense", "1", "time over that of dense only, median over repetitions"},
               median_ratio(samples[i], samples[0]));
  }
  report_parts(report, samples);
  report.set_fact({"ten_over_five_budgets", "1", "time of 10 budgets over that of 5, 20 settings"},
                  median_ratio(samples[4], samples[3]));
  if (options.large_grid) {
    report.set_fact({"large_over_linear", "1",
                     "time of 1000 configurations over 5 times that of 200; 1 is linear"},
                    median_ratio(samples[6], samples[4]) / 5);
  }
  return report;
}

}  // namespace quoka::apps
