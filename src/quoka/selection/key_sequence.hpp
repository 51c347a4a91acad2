#pragma once

#include <cstdint>
#include <vector>

#include "quoka/selection/chunk_context.hpp"

namespace quoka {

/// The candidates of one (chunk, KV head) in the order in which a growing budget takes them: forced
/// keys first, then by (score descending, position ascending). The kept set of any budget is a
/// prefix, so budgets are nested.
struct KeySequence {
  std::vector<std::int32_t> keys;  ///< absolute positions, the first `length` of the order
  std::vector<double> scores;      ///< same length; NaN for forced keys, empty without scores
  Index n_candidates = 0;
  Index n_forced = 0;
};

/// Orders the candidates, as far as `length` (at most n_candidates).
///
/// Forced: the first keep_first candidates, then the keep_recent most recent, latest first.
/// sink_recent: the first keep_first, then all others latest first. random: by random bits.
/// Cost: O(n_candidates + length log length).
KeySequence key_sequence(const ChunkContext& context, const SelectorConfig& config,
                         const VectorD& scores, Index length);

}  // namespace quoka
