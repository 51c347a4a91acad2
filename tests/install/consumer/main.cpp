// Replays one small layer with the installed library and prints how much attention was kept. Exits
// with 1 unless the budget that holds every key is exact and the small budget is a real selection.
#include <cmath>
#include <cstdio>
#include <vector>

#include "quoka/core/build_info.hpp"
#include "quoka/metrics/columns.hpp"
#include "quoka/replay/replay.hpp"

namespace {

constexpr quoka::Index n_tokens = 200;
constexpr quoka::Index head_dim = 8;

// Any smooth function of token and channel will do.
quoka::Matrix wave(double phase) {
  quoka::Matrix block(n_tokens, head_dim);
  for (quoka::Index i = 0; i < n_tokens; ++i) {
    for (quoka::Index j = 0; j < head_dim; ++j) {
      const double angle = phase + static_cast<double>(i * (j + 1)) * 0.37;
      block(i, j) = static_cast<float>(std::sin(angle));
    }
  }
  return block;
}

quoka::LayerInput two_heads_sharing_one_kv_head() {
  quoka::LayerInput layer;
  layer.shape = {.n_q_heads = 2,
                 .n_kv_heads = 1,
                 .n_tokens = n_tokens,
                 .n_keys = n_tokens,
                 .k_head_dim = head_dim,
                 .v_head_dim = head_dim};
  layer.rules.scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  layer.load_group = [](quoka::Index) {
    return quoka::HeadGroup{.q = {wave(0.0), wave(1.0)}, .k = wave(2.0), .v = wave(3.0)};
  };
  return layer;
}

}  // namespace

int main() {
  std::vector<quoka::SelectorConfig> configs(2);
  for (quoka::SelectorConfig& config : configs) {
    config.chunk_size = 32;
    config.n_sel_queries = 8;
  }
  configs[0].budget = quoka::Budget::from_keys(16);
  configs[1].budget = quoka::Budget::from_keys(n_tokens);
  const auto results = quoka::replay_layer(two_heads_sharing_one_kv_head(), configs, {});

  using quoka::CellCount;
  using quoka::RowMetric;
  using quoka::RowStatistic;
  const auto recall = quoka::cell_column(RowMetric::mass_recall, RowStatistic::mean);
  const auto active = quoka::cell_column(CellCount::n_rows_active);
  const float kept = results[0].values(0, recall);
  std::printf("quoka %s: 16 keys keep %.3f of the attention\n", quoka::build_info().version.data(),
              static_cast<double>(kept));
  const bool small_budget_selects = kept > 0.0F && kept < 1.0F;
  const bool large_budget_is_dense = results[1].values(0, active) == 0.0F;
  return small_budget_selects && large_budget_is_dense ? 0 : 1;
}
