#pragma once

#include <limits>

#include "quoka/core/attention_rules.hpp"

namespace quoka {

/// The steps between q.k and a probability that depend on the query head and position.
struct LogitRule {
  double scale = 1;
  double softcap = 0;                                      ///< 0 = none
  double alibi_slope = 0;                                  ///< per token of distance; 0 = none
  double sink = -std::numeric_limits<double>::infinity();  ///< sink logit; -inf = none

  [[nodiscard]] bool has_sink() const { return sink > -std::numeric_limits<double>::infinity(); }
};

/// The rule of one query head of the layer.
LogitRule logit_rule(const AttentionRules& rules, Index q_head);

/// Turns a row of products q.k into logits in place: scale, then cap, then ALiBi.
/// Shapes: row [n], its first column is the key at first_key_pos.
void to_logits(const LogitRule& rule, Index query_pos, Index first_key_pos,
               Eigen::Ref<Eigen::RowVectorXf> row);

/// What a softmax leaves besides the probabilities.
struct SoftmaxTail {
  float factor = 0;     ///< from weight exp(logit - largest) to probability
  float sink_prob = 0;  ///< probability of the sink logit, 0 without
  float lse = 0;        ///< natural log of the sum of exp(logit), sink included
};

/// The same from the sum of the weights, without the sink's.
SoftmaxTail softmax_tail(const LogitRule& rule, float largest, double sum_of_weights);

/// Turns a row of logits into probabilities in place. Throws: as to_probs.
SoftmaxTail softmax_row(const LogitRule& rule, Eigen::Ref<Eigen::RowVectorXf> row);

/// Turns a row of logits into probabilities in place and returns the sink's probability (0
/// without).
///
/// p_j = exp(l_j) / (sum exp(l) + exp(sink)): with a sink the row sums to less than 1.
/// Throws: FormatError if a logit is NaN or infinite.
float to_probs(const LogitRule& rule, Eigen::Ref<Eigen::RowVectorXf> row);

}  // namespace quoka
