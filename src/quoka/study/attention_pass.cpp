#include "quoka/study/attention_pass.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quoka/attention/key_products.hpp"
#include "quoka/attention/softmax.hpp"
#include "quoka/attention/visibility.hpp"

namespace quoka {
namespace {

constexpr Index rows_at_once = 64;

using ProbRow = Eigen::Ref<const Eigen::RowVectorXf>;

/// Adds one row's probabilities; the first n_sinks of them are on sinks.
void add_row(const ProbRow& probs, Index n_sinks, Index first_key, ClassAttention& to) {
  ++to.n_rows;
  to.sink_share += probs.head(n_sinks).cast<double>().sum();
  const auto rest = probs.tail(probs.size() - n_sinks).cast<double>().array();
  const double mass = rest.sum();
  if (!(mass > 0)) {
    return;
  }
  to.on_keys.segment(first_key + n_sinks, rest.size()) += rest.matrix().transpose();
  // -sum (p/m) ln(p/m) = ln m - sum p ln p / m; p ln p is 0 at 0.
  const double smallest = std::numeric_limits<double>::min();
  const double entropy = std::log(mass) - (rest * rest.max(smallest).log()).sum() / mass;
  ++to.n_spread;
  to.effective_keys += std::exp(entropy);
  to.effective_share += std::exp(entropy) / static_cast<double>(rest.size());
}

}  // namespace

HeadAttention measure_attention(const GroupView& group, Index head, const AttentionRules& rules,
                                Index sink_size, const std::vector<Index>& classes,
                                Index n_classes) {
  const ConstMatrixView& q = group.q[static_cast<std::size_t>(head)];
  const LogitRule rule = logit_rule(rules, group.q_head(head));
  HeadAttention result{.log_max =
                           VectorD::Constant(q.rows(), std::numeric_limits<double>::quiet_NaN())};
  result.classes.resize(static_cast<std::size_t>(n_classes),
                        {.on_keys = VectorD::Zero(group.k.rows())});
  Matrix products;
  for (Index begin = 0; begin < q.rows(); begin += rows_at_once) {
    const IndexRange rows{begin, std::min(begin + rows_at_once, q.rows())};
    const IndexRange keys{visible_keys(rules, rules.q_offset + rows.begin).begin,
                          rules.q_offset + rows.end};
    products.resize(rows.size(), keys.size());
    key_products(row_view(q, rows), row_view(group.k, keys), products);
    for (Index row = rows.begin; row < rows.end; ++row) {
      const Index query_pos = rules.q_offset + row;
      const IndexRange visible = visible_keys(rules, query_pos);
      auto line =
          products.row(row - rows.begin).segment(visible.begin - keys.begin, visible.size());
      to_logits(rule, query_pos, visible.begin, line);
      const Index n_sinks = std::clamp<Index>(sink_size - visible.begin, 0, visible.size());
      const auto outside = line.tail(line.size() - n_sinks);
      const float largest = outside.size() > 0 ? outside.maxCoeff() : 0.0F;
      const SoftmaxTail tail = softmax_row(rule, line);
      if (outside.size() > 0) {
        result.log_max[row] = static_cast<double>(largest) - static_cast<double>(tail.lse);
      }
      add_row(line, n_sinks, visible.begin,
              result.classes[static_cast<std::size_t>(classes[static_cast<std::size_t>(row)])]);
    }
  }
  return result;
}

}  // namespace quoka
