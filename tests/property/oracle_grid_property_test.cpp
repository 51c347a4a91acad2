// The oracle on a real capture: no selector and no switch keeps more pooled attention in any
// (layer, chunk, KV head). Pooled attention is computed here, in float64 and without the engine.

#include <algorithm>
#include <functional>

#include "quoka/selection/parameters.hpp"
#include "quoka/sweep/grid.hpp"
#include "quoka/sweep/layer_input.hpp"
#include "support/catch.hpp"
#include "unit/sweep/small_sweep.hpp"

using namespace quoka;
using quoka::test::setting;

namespace {

constexpr Index chunk_size = 128;
constexpr Index budget = 256;

/// Every selector, and every combination of the switches of quoka.
std::vector<SelectorConfig> full_grid() {
  const std::vector<Setting> axes{
      setting("capture", {"unused.h5"}),
      setting("out", {"unused.h5"}),
      setting("selector", {"oracle", "quoka", "random", "sink_recent", "keydiff", "snapkv",
                           "sample_attention", "sparq", "loki", "less_is_more"}),
      setting("budget", {std::to_string(budget)}),
      setting("query_rule", {"lowest_cosine", "highest_cosine", "largest_norm", "random", "stride",
                             "first", "last", "farthest_point", "all"}),
      setting("query_scope", {"per_head", "per_group"}),
      setting("query_mean", {"raw", "normalized"}),
      setting("score", {"cosine", "dot", "softmax"}),
      setting("pairing", {"rank", "position"}),
      setting("head_aggregation", {"mean_first", "mean_after", "max_after"}),
      setting("query_aggregation", {"max", "mean"})};
  return make_grid(make_sweep_config(axes));
}

/// Attention of the chunk's rows, summed over rows and heads: one value per key of the history.
VectorD pooled_attention(const HeadGroup& group, double scale, IndexRange rows) {
  VectorD pooled = VectorD::Zero(rows.begin);
  const MatrixD keys = group.k.topRows(rows.end).cast<double>();
  for (const Matrix& q : group.q) {
    for (Index row = rows.begin; row < rows.end; ++row) {
      const VectorD logits =
          scale * (keys.topRows(row + 1) * q.row(row).cast<double>().transpose());
      const VectorD weights = (logits.array() - logits.maxCoeff()).exp();
      pooled += weights.head(rows.begin) / weights.sum();
    }
  }
  return pooled;
}

double largest_sum(VectorD pooled, Index n) {
  std::nth_element(pooled.begin(), pooled.begin() + n, pooled.end(), std::greater<>());
  return pooled.head(n).sum();
}

}  // namespace

TEST_CASE("the oracle bounds every selector in every layer, chunk and KV head",
          "[property][oracle][capture]") {
  const CaptureReader reader(QUOKA_DATA_DIR "/smollm2-135m_needles_2k.h5");
  const std::vector<SelectorConfig> configs = full_grid();
  REQUIRE(configs.size() > 300);
  Index n_compared = 0;
  for (const CaptureLayer& stored : reader.layers()) {
    const Index layer_idx = stored.layer_idx;
    const LayerInput layer = layer_input(reader, layer_idx);
    REQUIRE(layer.rules.sliding_window + layer.rules.attention_chunk == 0);
    const auto results = replay_layer(layer, configs, {.selections = true, .n_threads = 2});
    for (Index kv_head = 0; kv_head < layer.shape.n_kv_heads; ++kv_head) {
      const HeadGroup group = layer.load_group(kv_head);
      for (Index begin = 0; begin < layer.shape.n_tokens; begin += chunk_size) {
        if (begin <= budget) {
          continue;  // everything is kept
        }
        const VectorD pooled = pooled_attention(
            group, layer.rules.scale, {begin, std::min(begin + chunk_size, layer.shape.n_tokens)});
        const double best = largest_sum(pooled, budget);
        for (std::size_t c = 0; c < configs.size(); ++c) {
          const auto kept = std::ranges::find_if(results[c].kept, [&](const KeptKeys& keys) {
            return keys.kv_head == kv_head && keys.chunk_begin == begin;
          });
          REQUIRE(kept != results[c].kept.end());
          const double mass = pooled(kept->key_indices).sum();
          ++n_compared;
          // The oracle itself ranks float32 probabilities: 1e-6 of the sum is far above their
          // noise.
          const bool is_oracle = configs[c].selector == SelectorKind::oracle;
          if (mass > best * (1 + 1e-12) || (is_oracle && mass < best * (1 - 1e-6))) {
            FAIL_CHECK(canonical_text(configs[c])
                       << ": layer " << layer_idx << ", chunk " << begin << ", KV head " << kv_head
                       << " keeps " << mass << " of at most " << best);
          }
        }
      }
    }
  }
  CHECK(n_compared == static_cast<Index>(configs.size()) * 3 * 3 * 13);
}
