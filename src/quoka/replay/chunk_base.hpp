#pragma once

#include <vector>

#include "quoka/replay/chunk_plan.hpp"
#include "quoka/selection/chunk_context.hpp"

namespace quoka {

/// What all configurations of one (chunk, KV head) are compared with. Row r = head * n_rows + i.
struct ChunkBase {
  ChunkContext context;
  Index sink_size = 0;
  VectorD visible_mass;  ///< [rows] dense p over visible keys: 1 minus the sink logit's share
  VectorD history_mass;  ///< [rows] dense p over keys before the chunk
  VectorD history_no_sink_mass;     ///< [rows] the same without the first sink_size positions
  VectorD sink_mass;                ///< [rows] dense p over the first sink_size positions
  VectorD own_mass;                 ///< [rows] dense p over the chunk's own keys
  Matrix own_numerator;             ///< [rows, v_head_dim] sum of p * v over the chunk's own keys
  std::vector<IndexRange> visible;  ///< [n_rows] absolute positions each token may see
  std::vector<ChunkNeedles> needles;

  /// Number of the chunk's tokens that may see the key.
  [[nodiscard]] Index rows_that_see(Index key_pos) const;
};

/// Sums over the dense probabilities, in float64. The context's dense chunk must be complete.
ChunkBase chunk_base(ChunkContext context, const AttentionRules& rules, Index sink_size,
                     const std::vector<NeedleGroup>& needle_groups);

/// p summed over all rows of the chunk, per key: [keys.size()], float64 in row order.
VectorD pooled_probs(const DenseChunk& dense);

}  // namespace quoka
