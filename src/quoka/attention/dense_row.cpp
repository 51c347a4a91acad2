#include <algorithm>
#include <cmath>

#include "quoka/attention/dense.hpp"
#include "quoka/attention/softmax.hpp"
#include "quoka/attention/visibility.hpp"
#include "quoka/core/float64_sums.hpp"

namespace quoka {

VectorD dense_row_float64(const GroupView& group, const AttentionRules& rules, Index head,
                          Index row) {
  const Index query_pos = rules.q_offset + row;
  const IndexRange visible = visible_keys(rules, query_pos);
  const LogitRule rule = logit_rule(rules, group.q_head(head));
  const ConstMatrixView k = row_view(group.k, visible);
  const ConstMatrixView v = row_view(group.v, visible);
  const float* const q = group.q[static_cast<std::size_t>(head)].data() + row * group.k.cols();

  VectorD logits(visible.size());
  for (Index j = 0; j < logits.size(); ++j) {
    double logit = dot_float64(k.data() + j * k.cols(), q, k.cols()) * rule.scale;
    if (rule.softcap > 0) {
      logit = rule.softcap * std::tanh(logit / rule.softcap);
    }
    logits[j] = logit + rule.alibi_slope * static_cast<double>(visible.begin + j - query_pos);
  }
  const double largest = std::max(logits.maxCoeff(), rule.sink);
  const VectorD weights = (logits.array() - largest).exp();
  const double sum = weights.sum() + (rule.has_sink() ? std::exp(rule.sink - largest) : 0.0);
  VectorD out = VectorD::Zero(v.cols());
  for (Index j = 0; j < weights.size(); ++j) {
    const float* const value = v.data() + j * v.cols();
    for (Index c = 0; c < out.size(); ++c) {
      out[c] += weights[j] * static_cast<double>(value[c]);
    }
  }
  return out / sum;
}

}  // namespace quoka
