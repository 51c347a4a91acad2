#include "quoka/attention/softmax.hpp"

#include <algorithm>
#include <cmath>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

/// Applies an array function to the whole row in vectors of one size, the last one padded: every
/// element goes through the same instructions, so equal logits give equal probabilities.
template <typename Function>
void apply_evenly(Eigen::Ref<Eigen::RowVectorXf> row, const Function& function) {
  constexpr Index width = 16;
  using Lane = Eigen::Array<float, width, 1>;
  const Index n_full = row.size() - row.size() % width;
  for (Index j = 0; j < n_full; j += width) {
    Eigen::Map<Lane> lane(row.data() + j);
    lane = function(Lane(lane));
  }
  const Index n_rest = row.size() - n_full;
  if (n_rest > 0) {
    Lane lane = Lane::Zero();
    lane.head(n_rest) = row.tail(n_rest).transpose();
    lane = function(lane);
    row.tail(n_rest) = lane.head(n_rest).transpose();
  }
}

}  // namespace

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
    apply_evenly(row,
                 [scale, cap](const auto& x) { return ((x * (scale / cap)).tanh() * cap).eval(); });
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

SoftmaxTail softmax_tail(const LogitRule& rule, float largest, double sum_of_weights) {
  const auto max_logit = static_cast<double>(largest);
  const double sink = rule.has_sink() ? std::exp(rule.sink - max_logit) : 0.0;
  const double sum = sum_of_weights + sink;
  return {.factor = static_cast<float>(1.0 / sum),
          .sink_prob = static_cast<float>(sink / sum),
          .lse = static_cast<float>(max_logit + std::log(sum))};
}

SoftmaxTail softmax_row(const LogitRule& rule, Eigen::Ref<Eigen::RowVectorXf> row) {
  const float largest =
      std::max(row.maxCoeff<Eigen::PropagateNaN>(), static_cast<float>(rule.sink));
  require<FormatError>(
      std::isfinite(largest),
      "the largest attention logit of a row is {} (q.k overflows float32, or a sink "
      "logit is not finite)",
      largest);
  apply_evenly(row, [largest](const auto& x) { return (x - largest).exp().eval(); });
  const SoftmaxTail tail = softmax_tail(rule, largest, row.cast<double>().sum());
  row *= tail.factor;
  return tail;
}

float to_probs(const LogitRule& rule, Eigen::Ref<Eigen::RowVectorXf> row) {
  return softmax_row(rule, row).sink_prob;
}

}  // namespace quoka
