#include "quoka/attention/blocked.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quoka/attention/visibility.hpp"
#include "quoka/core/error.hpp"

namespace quoka {
namespace {

/// Keys per block: with 128 rows the block's logits stay in a 1 MB cache, and the product is long
/// enough to run at full rate.
constexpr Index key_block = 256;

}  // namespace

BlockedAttention::BlockedAttention(const GroupView& group, const AttentionRules& rules,
                                   IndexRange rows)
    : group_(group),
      rules_(rules),
      rows_(rows),
      queries_(group.group_size() * rows.size(), group.k.cols()),
      logits_(queries_.rows(), key_block),
      maximum_(queries_.rows()),
      sum_(queries_.rows()),
      out_(Matrix::Zero(queries_.rows(), group.v.cols())) {
  for (Index head = 0; head < group.group_size(); ++head) {
    const LogitRule rule = logit_rule(rules, group.q_head(head));
    const IndexRange stacked{head * rows.size(), (head + 1) * rows.size()};
    queries_.middleRows(stacked.begin, stacked.size()) =
        row_view(group.q[static_cast<std::size_t>(head)], rows);
    maximum_.segment(stacked.begin, stacked.size()).setConstant(static_cast<float>(rule.sink));
    sum_.segment(stacked.begin, stacked.size()).setConstant(rule.has_sink() ? 1.0 : 0.0);
    head_rules_.push_back(rule);
  }
}

void BlockedAttention::add_range(IndexRange keys) {
  for (Index begin = keys.begin; begin < keys.end; begin += key_block) {
    const IndexRange block{begin, std::min(begin + key_block, keys.end)};
    add_block(row_view(group_.k, block), row_view(group_.v, block), block, false);
  }
}

void BlockedAttention::add_gathered(const ConstMatrixView& k, const ConstMatrixView& v) {
  QUOKA_ASSERT(rules_.alibi == Alibi::none);
  for (Index begin = 0; begin < k.rows(); begin += key_block) {
    const IndexRange block{begin, std::min(begin + key_block, k.rows())};
    add_block(row_view(k, block), row_view(v, block), block, true);
  }
}

void BlockedAttention::add_block(const ConstMatrixView& k, const ConstMatrixView& v,
                                 IndexRange keys, bool is_gathered) {
  const Index width = keys.size();
  logits_.leftCols(width).noalias() = queries_ * k.transpose();
  for (Index row = 0; row < queries_.rows(); ++row) {
    IndexRange visible = keys;
    if (!is_gathered) {
      const IndexRange seen =
          visible_keys(rules_, rules_.q_offset + rows_.begin + row % rows_.size());
      visible = {std::max(keys.begin, seen.begin), std::min(keys.end, seen.end)};
    }
    update_row(row, visible, keys.begin, width);
  }
  out_.noalias() += logits_.leftCols(width) * v;
}

void BlockedAttention::update_row(Index row, IndexRange visible, Index first_key, Index width) {
  auto block = logits_.row(row).head(width);
  if (visible.size() == 0) {
    block.setZero();
    return;
  }
  const Index query_pos = rules_.q_offset + rows_.begin + row % rows_.size();
  auto segment = block.segment(visible.begin - first_key, visible.size());
  to_logits(head_rules_[static_cast<std::size_t>(row / rows_.size())], query_pos, visible.begin,
            segment);
  const float largest = std::max(maximum_[row], segment.maxCoeff<Eigen::PropagateNaN>());
  segment = (segment.array() - largest).exp();
  const double shrink = std::exp(static_cast<double>(maximum_[row]) - static_cast<double>(largest));
  sum_[row] = sum_[row] * shrink + static_cast<double>(segment.sum());
  if (largest != maximum_[row]) {
    out_.row(row) *= static_cast<float>(shrink);
    maximum_[row] = largest;
  }
  block.head(visible.begin - first_key).setZero();
  block.tail(first_key + width - visible.end).setZero();
}

AttentionOutput BlockedAttention::finish() {
  AttentionOutput result{.out = std::move(out_), .lse = Vector(sum_.size())};
  for (Index row = 0; row < sum_.size(); ++row) {
    require<FormatError>(std::isfinite(maximum_[row]) && std::isfinite(sum_[row]),
                         "the largest attention logit of token {} is {} (q.k overflows float32)",
                         rows_.begin + row % rows_.size(), maximum_[row]);
    result.out.row(row) *= static_cast<float>(1.0 / sum_[row]);
    result.lse[row] = static_cast<float>(static_cast<double>(maximum_[row]) + std::log(sum_[row]));
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
