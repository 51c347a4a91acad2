#include "quoka/attention/softmax.hpp"

#include <algorithm>
#include <cmath>

#include "quoka/core/error.hpp"

namespace quoka {

LogitRule logit_rule(const AttentionRules& rules, Index q_head) {
  LogitRule rule{.scale = rules.scale, .softcap = rules.softcap};
  const auto head = static_cast<std::size_t>(q_head);
  if (rules.alibi != Alibi::none) {
    const double slope = static_cast<double>(rules.alibi_slopes[head]);
    rule.alibi_slope = rules.alibi == Alibi::scaled ? slope * rules.scale : slope;
  }
  if (!rules.sinks.empty()) {
    rule.sink = static_cast<double>(rules.sinks[head]);
  }
  return rule;
}

void to_logits(const LogitRule& rule, Index query_pos, Index first_key_pos,
               Eigen::Ref<Eigen::RowVectorXf> row) {
  const auto scale = static_cast<float>(rule.scale);
  if (rule.softcap > 0) {
    const auto cap = static_cast<float>(rule.softcap);
    row = (row.array() * (scale / cap)).tanh() * cap;
  } else {
    row *= scale;
  }
  if (rule.alibi_slope != 0) {
    for (Index j = 0; j < row.size(); ++j) {
      const auto distance = static_cast<double>(first_key_pos + j - query_pos);
      row[j] += static_cast<float>(rule.alibi_slope * distance);
    }
  }
}

float to_probs(const LogitRule& rule, Eigen::Ref<Eigen::RowVectorXf> row) {
  const float largest =
      std::max(row.maxCoeff<Eigen::PropagateNaN>(), static_cast<float>(rule.sink));
  require<FormatError>(
      std::isfinite(largest),
      "the largest attention logit of a row is {} (q.k overflows float32, or a sink "
      "logit is not finite)",
      largest);
  row = (row.array() - largest).exp();
  const double sink = rule.has_sink() ? std::exp(rule.sink - static_cast<double>(largest)) : 0.0;
  const double sum = row.cast<double>().sum() + sink;
  row *= static_cast<float>(1.0 / sum);
  return static_cast<float>(sink / sum);
}

}  // namespace quoka
