#include "quoka/attention/sparse.hpp"

#include "quoka/attention/softmax.hpp"

namespace quoka {

Eigen::RowVectorXf sparse_row(const GroupView& group, const AttentionRules& rules, Index head,
                              Index row, std::span<const std::int32_t> key_indices) {
  const Index query_pos = rules.q_offset + row;
  const LogitRule rule = logit_rule(rules, group.q_head(head));
  const auto q = group.q[static_cast<std::size_t>(head)].row(row);
  Eigen::RowVectorXf probs(static_cast<Index>(key_indices.size()));
  for (Index j = 0; j < probs.size(); ++j) {
    const Index key_pos = key_indices[static_cast<std::size_t>(j)];
    probs[j] = q.dot(group.k.row(key_pos));
    to_logits(rule, query_pos, key_pos, probs.segment(j, 1));
  }
  to_probs(rule, probs);
  Eigen::RowVectorXf out = Eigen::RowVectorXf::Zero(group.v.cols());
  for (Index j = 0; j < probs.size(); ++j) {
    out += probs[j] * group.v.row(key_indices[static_cast<std::size_t>(j)]);
  }
  return out;
}

}  // namespace quoka
