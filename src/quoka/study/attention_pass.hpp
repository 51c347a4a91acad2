#pragma once

#include <vector>

#include "quoka/attention/group_view.hpp"
#include "quoka/core/attention_rules.hpp"

namespace quoka {

/// Where the queries of one similarity class look. Sums over its rows.
struct ClassAttention {
  Index n_rows = 0;
  double sink_share = 0;       ///< probability on the first sink_size positions
  Index n_spread = 0;          ///< rows with attention outside the sinks; they make up what follows
  double effective_keys = 0;   ///< exp(entropy) of the row's attention outside the sinks
  double effective_share = 0;  ///< that, divided by the number of those keys
  VectorD on_keys;             ///< [n_keys] probability; 0 on the sinks
};

/// The exact attention of one query head, reduced row by row.
struct HeadAttention {
  VectorD
      log_max;  ///< [n_tokens] ln of the largest probability outside the sinks; NaN without keys
  std::vector<ClassAttention> classes = {};
};

/// Attends with every row of a head and reduces at once.
///
/// classes: [n_tokens] class of each row, below n_classes. sink_size leading positions are sinks.
/// Products in float32, sums in float64. ln(max) is max logit - ln(sum exp), so it does not
/// underflow. Cost: O(n_tokens * n_keys * head_dim); holds 64 rows of attention.
/// Throws: FormatError if a logit is not finite.
HeadAttention measure_attention(const GroupView& group, Index head, const AttentionRules& rules,
                                Index sink_size, const std::vector<Index>& classes,
                                Index n_classes);

}  // namespace quoka
