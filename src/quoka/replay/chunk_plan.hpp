#pragma once

#include <vector>

#include "quoka/core/attention_rules.hpp"
#include "quoka/metrics/needles.hpp"
#include "quoka/replay/replay.hpp"

namespace quoka {

/// Rows of each prefill chunk: the first has chunk_offset rows when that is > 0, the last what is
/// left.
std::vector<IndexRange> chunk_rows(Index n_tokens, Index chunk_size, Index chunk_offset);

/// Whether the rows of a chunk count in the metrics of a configuration.
enum class ChunkState {
  active,
  within_budget,  ///< no more candidates than the budget: dense-equivalent and exact
  below_min_history,
};

/// What can be said of one chunk and configuration before any tensor is read.
struct ChunkFacts {
  Index n_candidates = 0;
  Index keys_requested = 0;  ///< the budget in keys; may exceed n_candidates
  ChunkState state = ChunkState::active;

  [[nodiscard]] Index keys_kept() const {
    return keys_requested < n_candidates ? keys_requested : n_candidates;
  }
};

ChunkFacts chunk_facts(const AttentionRules& rules, IndexRange rows, const SelectorConfig& config,
                       Index min_history);

/// Question rows of a chunk and the needle spans that they could find in the history.
struct ChunkNeedles {
  std::vector<Index> rows;        ///< local row indices marked as question
  std::vector<IndexRange> spans;  ///< absolute positions, each wholly in the history and visible
                                  ///< whole to at least one of the rows
};

/// One entry per needle group that has rows and spans in this chunk.
std::vector<ChunkNeedles> chunk_needles(const AttentionRules& rules, IndexRange rows,
                                        const std::vector<NeedleGroup>& groups);

}  // namespace quoka
