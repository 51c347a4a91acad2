#pragma once

#include <vector>

#include "quoka/replay/chunk_plan.hpp"
#include "quoka/selection/chunk_context.hpp"

namespace quoka {

/// What all configurations of one (chunk, KV head) are compared with. Lanes as in DenseChunk.
struct ChunkBase {
  ChunkContext context;
  Index sink_size = 0;
  LaneArrayD visible_mass =
      {};  ///< [lanes] dense p over visible keys: 1 minus the sink logit's share
  LaneArrayD history_mass = {};          ///< [lanes] dense p over keys before the chunk
  LaneArrayD history_no_sink_mass = {};  ///< [lanes] the same without the first sink_size positions
  LaneArrayD sink_mass = {};             ///< [lanes] dense p over the first sink_size positions
  LaneArrayD own_mass = {};              ///< [lanes] dense p over the chunk's own keys
  Matrix own_numerator = {};  ///< [v_head_dim, lanes] sum of p * v over the chunk's own keys
  Matrix out = {};            ///< [v_head_dim, lanes] the dense output, channel by channel
  std::vector<std::int32_t> pairs =
      {};                   ///< [keys] number of the chunk's tokens that may see the key
  Index history_pairs = 0;  ///< sum of pairs over keys before the chunk
  Index own_pairs = 0;      ///< the same over the chunk's own keys
  std::vector<IndexRange> visible = {};  ///< [n_rows] absolute positions each token may see
  std::vector<ChunkNeedles> needles = {};
};

/// Sums over the dense probabilities, in float64. The context's dense chunk must be complete.
ChunkBase chunk_base(ChunkContext context, const AttentionRules& rules, Index sink_size,
                     const std::vector<NeedleGroup>& needle_groups);

}  // namespace quoka
