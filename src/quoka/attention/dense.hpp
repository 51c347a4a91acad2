#pragma once

/// Exact attention of a block of rows, with the probabilities kept: the reference that every key
/// selection is compared with. Comes in: one GQA group. Knows nothing of selections or metrics.

#include "quoka/attention/group_view.hpp"
#include "quoka/core/attention_rules.hpp"
#include "quoka/core/lanes.hpp"

namespace quoka {

/// Dense attention of consecutive rows of all heads of a group. Lane head * rows.size() + i belongs
/// to query head `head` of the group and token rows.begin + i.
struct DenseChunk {
  IndexRange rows;  ///< tokens: rows of q
  IndexRange keys;  ///< absolute positions of the rows of probs
  /// [keys.size(), padded_lanes(group_size * n_rows)] key by key, so that what a selection keeps is
  /// whole rows; 0 where a key is not visible, and in the lanes beyond the last.
  Matrix probs;
  Vector sink_probs;  ///< [lanes] probability of the sink logit, 0 without
  Vector lse;         ///< [lanes] log of the sum of exp(logit), sink included
  Matrix out;         ///< [lanes, v_head_dim]
  VectorD pooled;     ///< [keys.size()] p summed over all lanes

  [[nodiscard]] Index lane(Index head, Index row) const { return head * rows.size() + row; }
  [[nodiscard]] Index n_lanes() const { return out.rows(); }
};

/// Computes the dense attention of the rows.
///
/// Shapes: rows within [0, n_tokens); the keys of the result run from the lowest visible one to the
/// last row's own.
/// Cost: 2 * group_size * rows * keys * (k_head_dim + v_head_dim) operations; holds rows x keys
/// floats.
/// Throws: FormatError if a logit is not finite.
DenseChunk dense_chunk(const GroupView& group, const AttentionRules& rules, IndexRange rows);

/// The same output row in float64 throughout: the measure of the float32 path's own noise.
/// Shapes: head in [0, group_size), row in [0, n_tokens); returns [v_head_dim].
VectorD dense_row_float64(const GroupView& group, const AttentionRules& rules, Index head,
                          Index row);

}  // namespace quoka
