#include "quoka/attention/dense.hpp"

#include <algorithm>
#include <cmath>

#include "quoka/attention/key_products.hpp"
#include "quoka/attention/softmax.hpp"
#include "quoka/attention/visibility.hpp"

namespace quoka {
namespace {

/// Softmax of each row over its visible keys; everything else becomes exactly 0.
void softmax_rows(const AttentionRules& rules, const LogitRule& rule, Index head,
                  DenseChunk& chunk) {
  const Index n_rows = chunk.rows.size();
  for (Index i = 0; i < n_rows; ++i) {
    const Index query_pos = rules.q_offset + chunk.rows.begin + i;
    const IndexRange visible = visible_keys(rules, query_pos);
    auto row = chunk.probs.row(head * n_rows + i);
    row.head(visible.begin - chunk.keys.begin).setZero();
    row.tail(chunk.keys.end - visible.end).setZero();
    auto segment = row.segment(visible.begin - chunk.keys.begin, visible.size());
    to_logits(rule, query_pos, visible.begin, segment);
    const SoftmaxTail tail = softmax_row(rule, segment);
    chunk.sink_probs[head * n_rows + i] = tail.sink_prob;
    chunk.lse[head * n_rows + i] = tail.lse;
  }
}

}  // namespace

DenseChunk dense_chunk(const GroupView& group, const AttentionRules& rules, IndexRange rows) {
  const Index n_rows = rows.size();
  const IndexRange keys{visible_keys(rules, rules.q_offset + rows.begin).begin,
                        rules.q_offset + rows.end};
  DenseChunk chunk{.rows = rows,
                   .keys = keys,
                   .probs = Matrix(group.group_size() * n_rows, keys.size()),
                   .sink_probs = Vector(group.group_size() * n_rows),
                   .lse = Vector(group.group_size() * n_rows),
                   .out = Matrix(group.group_size() * n_rows, group.v.cols())};
  const ConstMatrixView k = row_view(group.k, keys);
  for (Index head = 0; head < group.group_size(); ++head) {
    const ConstMatrixView q = row_view(group.q[static_cast<std::size_t>(head)], rows);
    key_products(q, k, chunk.probs.middleRows(head * n_rows, n_rows));
    softmax_rows(rules, logit_rule(rules, group.q_head(head)), head, chunk);
  }
  chunk.out.noalias() = chunk.probs * row_view(group.v, keys);
  return chunk;
}

VectorD dense_row_float64(const GroupView& group, const AttentionRules& rules, Index head,
                          Index row) {
  const Index query_pos = rules.q_offset + row;
  const IndexRange visible = visible_keys(rules, query_pos);
  const LogitRule rule = logit_rule(rules, group.q_head(head));
  const VectorD q = group.q[static_cast<std::size_t>(head)].row(row).cast<double>();

  VectorD logits = row_view(group.k, visible).cast<double>() * q * rule.scale;
  for (Index j = 0; j < logits.size(); ++j) {
    if (rule.softcap > 0) {
      logits[j] = rule.softcap * std::tanh(logits[j] / rule.softcap);
    }
    logits[j] += rule.alibi_slope * static_cast<double>(visible.begin + j - query_pos);
  }
  const double largest = std::max(logits.maxCoeff(), rule.sink);
  const VectorD weights = (logits.array() - largest).exp();
  const double sum = weights.sum() + (rule.has_sink() ? std::exp(rule.sink - largest) : 0.0);
  return row_view(group.v, visible).cast<double>().transpose() * weights / sum;
}

}  // namespace quoka
