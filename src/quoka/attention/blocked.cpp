#include "quoka/attention/blocked.hpp"

#include <algorithm>

#include "quoka/attention/visibility.hpp"
#include "quoka/core/error.hpp"

namespace quoka {
namespace {

/// Keys per block: the weights of a panel fill half of a 48 KB cache, and a block's keys and values
/// stay in the next one while all panels use them.
constexpr Index key_block = 96;

}  // namespace

BlockedAttention::BlockedAttention(const GroupView& group, const AttentionRules& rules,
                                   IndexRange rows)
    : group_(group),
      queries_(group, rows),
      softmax_(group, rules, rows),
      weights_(key_block, lane_panel) {
  const Index n_panels = (softmax_.n_lanes() + lane_panel - 1) / lane_panel;
  out_ = Matrix::Zero(n_panels * group.v.cols(), lane_panel);
}

Lanes BlockedAttention::out_panel(Index first_lane, Index n_lanes) {
  const Index v_head_dim = group_.v.cols();
  return {out_.data() + first_lane * v_head_dim, v_head_dim, n_lanes,
          Eigen::OuterStride<>(lane_panel)};
}

void BlockedAttention::add_range(IndexRange keys) {
  for (Index begin = keys.begin; begin < keys.end; begin += key_block) {
    const IndexRange block{begin, std::min(begin + key_block, keys.end)};
    add_block(softmax_.block_of(block), row_view(group_.k, block), row_view(group_.v, block));
  }
}

void BlockedAttention::add_gathered(const ConstMatrixView& k, const ConstMatrixView& v) {
  QUOKA_ASSERT(!softmax_.has_alibi());
  for (Index begin = 0; begin < k.rows(); begin += key_block) {
    const IndexRange block{begin, std::min(begin + key_block, k.rows())};
    add_block({block}, row_view(k, block), row_view(v, block));
  }
}

void BlockedAttention::add_block(const KeyBlock& keys, const ConstMatrixView& k,
                                 const ConstMatrixView& v) {
  const Index n_lanes = padded_lanes(softmax_.n_lanes());
  for (Index lane = 0; lane < n_lanes; lane += lane_panel) {
    const Index width = std::min(lane_panel, n_lanes - lane);
    const Lanes weights(weights_.data(), k.rows(), width, Eigen::OuterStride<>(lane_panel));
    lane_product(as_is(k), queries_.panel(lane, width), weights);
    const LaneArray largest_before = softmax_.largest(lane, width);
    softmax_.to_logits(keys, lane, weights);
    const LaneArray factors = softmax_.rescale(lane, largest_before);
    Lanes out = out_panel(lane, width);
    if ((factors != 1.0F).any()) {
      out.array().rowwise() *= factors.transpose();
    }
    softmax_.to_weights(keys, lane, weights);
    add_lane_product(turned(v), weights, out);
  }
}

AttentionOutput BlockedAttention::finish() {
  const LaneSoftmax::Totals totals = softmax_.totals();
  const Index n_lanes = softmax_.n_lanes();
  AttentionOutput result{.out = Matrix(n_lanes, group_.v.cols()), .lse = totals.lse};
  for (Index lane = 0; lane < n_lanes; lane += lane_panel) {
    const Index width = std::min(lane_panel, n_lanes - lane);
    result.out.middleRows(lane, width) =
        (out_panel(lane, width).array().rowwise() * totals.factors.segment(lane, width).transpose())
            .transpose();
  }
  return result;
}

AttentionOutput blocked_attention(const GroupView& group, const AttentionRules& rules,
                                  IndexRange rows) {
  BlockedAttention attention(group, rules, rows);
  attention.add_range(
      {visible_keys(rules, rules.q_offset + rows.begin).begin, rules.q_offset + rows.end});
  return attention.finish();
}

}  // namespace quoka
