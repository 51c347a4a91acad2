#pragma once

#include <cstdint>
#include <vector>

#include "quoka/replay/chunk_base.hpp"
#include "quoka/replay/oracle_ranks.hpp"
#include "quoka/selection/key_sequence.hpp"

namespace quoka {

/// What the members of one key order share: sums over its prefixes, and where each key stands.
struct KeyWalk {
  const ChunkBase& base;
  const AttentionRules& rules;
  const KeySequence& sequence;
  const OracleRanks& oracle;
  bool with_own_keys;  ///< candidates = history: the chunk's own keys are attended too

  std::vector<double> pooled;        ///< [length + 1] pooled probability of the first n keys
  std::vector<Index> pairs;          ///< [length + 1] visible (row, key) pairs of the first n keys
  std::vector<Index> history_pairs;  ///< [length + 1] the same over keys before the chunk
  std::vector<std::int32_t> ranks;   ///< [length] the oracle's rank of each key
  std::vector<std::int32_t> places;  ///< per dense key its place in the order; only with needles
  std::vector<Index>
      first_visible;  ///< per token the first place it may see; only without own keys

  /// True if the token sees none of the first n keys (never with the chunk's own keys: it sees
  /// itself).
  [[nodiscard]] bool is_empty_row(Index n_keys, Index token) const {
    return !with_own_keys && first_visible[static_cast<std::size_t>(token)] >= n_keys;
  }

  /// The attended keys that one token may see, for a row that is attended again.
  [[nodiscard]] std::vector<std::int32_t> attended_keys(Index n_keys, Index token) const;
};

/// Cost: O(length of the order), and O(rows * length) at worst without own keys.
KeyWalk key_walk(const ChunkBase& base, const AttentionRules& rules, const KeySequence& sequence,
                 Candidates candidates, const OracleRanks& oracle);

}  // namespace quoka
