#pragma once

#include <span>

#include "quoka/selection/chunk_context.hpp"
#include "quoka/selection/key_sequence.hpp"

namespace quoka {

/// Attention of the chunk's rows to a prefix of a key order, from the dense probabilities of the
/// kept columns: no second exponential, no second product of queries and keys.
struct PrefixSums {
  Matrix numerator;         ///< [rows of probs, v_head_dim] sum of p * v over the prefix
  VectorD mass;             ///< [rows of probs] sum of p over the prefix
  VectorD history;          ///< the same over keys before the chunk
  VectorD history_no_sink;  ///< the same without the first sink_size positions

  static PrefixSums zero(Index n_rows, Index v_head_dim);
};

/// Walks along a key order. Sums are taken in blocks of fixed places in the order, so the value at
/// a prefix does not depend on which other prefixes are asked for.
///
/// Cost of all prefixes together: that of the longest, plus part of a block each.
class PrefixAttention {
 public:
  PrefixAttention(const ChunkContext& context, const KeySequence& sequence, Index sink_size);

  /// Sums over the first n keys of the order, valid until the next call; calls must not go down in
  /// n.
  const PrefixSums& at(Index n);

 private:
  void add(PrefixSums& sums, Index begin, Index count) const;
  /// Sum of p over the history keys at places [begin, end).
  [[nodiscard]] double history_sum(Index row, Index begin, Index end) const;

  Matrix probs_;        ///< [rows of probs, length] dense probabilities in the order's columns
  Matrix values_;       ///< [length, v_head_dim]
  VectorD in_history_;  ///< [length] 1 or 0; empty if all are
  std::vector<Index> sink_places_;  ///< places in the order of history keys below sink_size
  PrefixSums full_blocks_;
  PrefixSums with_part_;  ///< full_blocks_ and a part of the next block
  Index n_full_ = 0;
};

}  // namespace quoka
