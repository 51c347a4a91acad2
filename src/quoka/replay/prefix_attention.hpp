#pragma once

#include "quoka/replay/chunk_base.hpp"
#include "quoka/selection/key_sequence.hpp"

namespace quoka {

/// Attention of the chunk's rows to a prefix of a key order, from the dense probabilities of the
/// kept keys: no second exponential, no second product of queries and keys. Lanes as in DenseChunk.
struct PrefixSums {
  Matrix numerators;         ///< [v_head_dim, lanes] sum of p * v over the attended keys
  LaneSums history_no_sink;  ///< sum of p over kept keys before the chunk, from sink_size on
  LaneSums sinks;            ///< over kept keys before the chunk and sink_size
  LaneSums own;              ///< over kept keys of the chunk itself; only if candidates = cache
};

/// Walks along a key order. Sums are taken in blocks of fixed places in the order, so the value at
/// a prefix does not depend on which other prefixes are asked for.
///
/// Cost of all prefixes together: that of the longest, plus part of a block each.
class PrefixAttention {
 public:
  /// With candidates = history the chunk's own keys are attended too, and the numerators begin with
  /// theirs.
  PrefixAttention(const ChunkBase& base, const KeySequence& sequence, Candidates candidates);

  /// Sums over the first n keys of the order, valid until the next call; calls must not go down in
  /// n.
  const PrefixSums& at(Index n);

 private:
  void add(PrefixSums& sums, IndexRange places);

  const ChunkBase& base_;
  const KeySequence& sequence_;
  Matrix probs_;   ///< [block, lanes] of the keys that are being added
  Matrix values_;  ///< [block, v_head_dim]
  PrefixSums full_blocks_;
  PrefixSums with_part_;  ///< full_blocks_ and a part of the next block
  Index n_full_ = 0;
};

}  // namespace quoka
