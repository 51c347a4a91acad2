#include <algorithm>

#include "quoka/core/lanes.hpp"
#include "quoka/metrics/columns.hpp"
#include "quoka/replay/chunk_plan.hpp"
#include "quoka/replay/shared_plan.hpp"

namespace quoka {
namespace {

Index largest_chunk(std::span<const SelectorConfig> configs, Index n_tokens) {
  Index largest = 0;
  for (const SelectorConfig& config : configs) {
    largest = std::max(largest, std::min(config.chunk_size, n_tokens));
  }
  return largest;
}

}  // namespace

std::int64_t replay_bytes(const AttentionShape& shape, std::span<const SelectorConfig> configs,
                          const ReplaySettings& settings) {
  const Index group = shape.group_size();
  const Index chunk = largest_chunk(configs, shape.n_tokens);
  const Index tensors = group * shape.n_tokens * shape.k_head_dim +
                        shape.n_keys * (2 * shape.k_head_dim + shape.v_head_dim);
  // Per thread: the dense probabilities of the longest prefix; outputs and numerators by channel.
  const Index per_thread = padded_lanes(group * chunk) * (shape.n_keys + 5 * shape.v_head_dim);
  const Index rows = static_cast<Index>(configs.size()) * group * n_row_metrics * shape.n_tokens;
  return static_cast<std::int64_t>(sizeof(float)) *
         (tensors + settings.n_threads * per_thread + rows);
}

double replay_flops(const AttentionShape& shape, std::span<const SelectorConfig> configs) {
  const auto number = [](Index n) { return static_cast<double>(n); };
  double flops = 0;
  for (const SharedChunking& chunking : share_work(configs)) {
    for (const IndexRange rows :
         chunk_rows(shape.n_tokens, chunking.chunk_size, chunking.chunk_offset)) {
      const double keys = number(shape.n_keys - shape.n_tokens + rows.end);
      const double pairs = number(shape.n_q_heads * rows.size()) * keys;
      flops += 2 * pairs * number(shape.k_head_dim + shape.v_head_dim);
      for (const SharedScores& scores : chunking.scores) {
        const double slots = number(std::min(scores.config.n_sel_queries, rows.size()));
        flops += 2 * slots * number(shape.n_kv_heads) * keys * number(shape.k_head_dim);
        for (const SharedSequence& sequence : scores.sequences) {
          double longest = 0;
          for (const Index c : sequence.config_indices) {
            longest = std::max(
                longest,
                number(configs[static_cast<std::size_t>(c)].budget.keys(static_cast<Index>(keys))));
          }
          flops += 2 * number(shape.n_q_heads * rows.size()) * std::min(longest, keys) *
                   number(shape.v_head_dim);
        }
      }
    }
  }
  return flops;
}

}  // namespace quoka
