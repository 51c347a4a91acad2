#pragma once

#include "quoka/attention/group_view.hpp"
#include "quoka/attention/softmax.hpp"
#include "quoka/core/attention_rules.hpp"
#include "quoka/core/lane_product.hpp"

namespace quoka {

/// Keys that are worked on together.
struct KeyBlock {
  IndexRange keys;                    ///< absolute positions
  std::vector<IndexRange> seen_by{};  ///< per key the rows that may see it; empty: all see all
};

/// The softmax of all rows of a block side by side, one lane per row and query head (core/lanes):
/// blocks of keys go through to_logits, which raises the largest logit of each lane, and then
/// through to_weights, which adds up exp(logit - largest).
///
/// With all keys through to_logits first, each weight is final; with block after block (online
/// softmax) what was summed so far shrinks by rescale.
class LaneSoftmax {
 public:
  LaneSoftmax(const GroupView& group, const AttentionRules& rules, IndexRange rows);

  /// group_size * n_rows; lane head * n_rows + i is row i of query head `head`.
  [[nodiscard]] Index n_lanes() const { return static_cast<Index>(heads_.size()) * rows_.size(); }

  [[nodiscard]] bool has_alibi() const { return rules_.alibi != Alibi::none; }

  /// The block of consecutive keys, with the rows that may see each unless all see all.
  [[nodiscard]] KeyBlock block_of(IndexRange keys) const;

  /// Products q.k become logits: scale, cap, ALiBi; -inf where a row may not see the key.
  /// Shapes: block [keys, lanes from first_lane on], both multiples of lane_width.
  void to_logits(const KeyBlock& keys, Index first_lane, Lanes block);

  /// Logits become weights exp(logit - largest); 0 where a row may not see the key. As above.
  void to_weights(const KeyBlock& keys, Index first_lane, Lanes block);

  /// Largest logits so far of these lanes: what rescale needs from before a block.
  [[nodiscard]] LaneArray largest(Index first_lane, Index n_lanes) const {
    return largest_.segment(first_lane, n_lanes);
  }

  /// Shrinks the sums of these lanes to the largest logits of now; returns the factors.
  LaneArray rescale(Index first_lane, const LaneArray& largest_before);

  /// What the sums say in the end; fields [n_lanes].
  struct Totals {
    LaneArray factors;     ///< [padded lanes] from weight to probability; 0 beyond the last lane
    LaneArray sink_probs;  ///< probability of the sink logit, 0 without
    LaneArray lse;         ///< natural log of the sum of exp(logit), sink included
  };
  /// Throws: FormatError if the largest logit or the sum of a lane is not finite.
  [[nodiscard]] Totals totals() const;

 private:
  /// Bias of the lanes from `lane` on for a key.
  [[nodiscard]] Lane alibi(Index key_pos, Index lane) const;
  /// The lanes, with `value` in those of other rows.
  [[nodiscard]] Lane hide(IndexRange seen_by, Index lane, const Lane& lanes, float value) const;

  AttentionRules rules_;
  IndexRange rows_;
  std::vector<LogitRule> heads_;
  LaneArray row_of_lane_;    ///< counted from rows.begin; whole numbers
  LaneArrayD alibi_slopes_;  ///< 0 without ALiBi
  LaneArray largest_;        ///< -inf before the first visible key; at least the sink logit
  LaneArrayD sums_;          ///< of weights, without the sink's
};

}  // namespace quoka
