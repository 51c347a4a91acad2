#pragma once

#include "quoka/attention/lane_queries.hpp"
#include "quoka/attention/lane_softmax.hpp"

namespace quoka {

/// Attention of a block of rows without its probabilities. Row head * rows.size() + i belongs to
/// query head `head` of the group and token rows.begin + i.
struct AttentionOutput {
  Matrix out;  ///< [group_size * n_rows, v_head_dim]
  Vector lse;  ///< [group_size * n_rows] log of the sum of exp(logit), sink logit included
};

/// Attention in one pass over blocks of keys with a running maximum and sum per row (online
/// softmax): no rows x keys matrix. The rows of all heads of the group are lanes, so each block of
/// keys is read from memory once for all of them.
///
/// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (arXiv 1805.02867).
class BlockedAttention {
 public:
  /// Shapes: rows within [0, n_tokens).
  BlockedAttention(const GroupView& group, const AttentionRules& rules, IndexRange rows);

  /// Attends to the group's keys at these absolute positions, as far as each row may see them.
  void add_range(IndexRange keys);

  /// Attends to keys from anywhere, all visible to every row; for layers without ALiBi, whose bias
  /// needs the positions. Shapes: k [n, k_head_dim], v [n, v_head_dim].
  void add_gathered(const ConstMatrixView& k, const ConstMatrixView& v);

  /// Normalises what was attended so far. Throws: FormatError if a logit was not finite.
  AttentionOutput finish();

 private:
  void add_block(const KeyBlock& keys, const ConstMatrixView& k, const ConstMatrixView& v);
  [[nodiscard]] Lanes out_panel(Index first_lane, Index n_lanes);

  GroupView group_;
  LaneQueries queries_;
  LaneSoftmax softmax_;
  Matrix weights_;  ///< [block, lane_panel] logits, then weights of one panel
  Matrix out_;      ///< panels of [v_head_dim, lane_panel]: sum of exp(logit - largest) * v
};

/// Dense attention of the rows over everything they may see.
/// Cost: 2 * group_size * rows * keys * (k_head_dim + v_head_dim) operations; memory does not
/// depend on the number of keys.
/// Throws: FormatError if a logit is not finite.
AttentionOutput blocked_attention(const GroupView& group, const AttentionRules& rules,
                                  IndexRange rows);

}  // namespace quoka
