#pragma once

#include <cstdint>
#include <span>

#include "quoka/attention/group_view.hpp"
#include "quoka/core/attention_rules.hpp"

namespace quoka {

/// Attention of one row over a given set of keys: the softmax runs over these keys only (and the
/// sink), so its maximum is theirs and keys far below the row's best do not underflow.
///
/// Shapes: key_indices are absolute positions, all visible to the row, not empty; returns
/// [v_head_dim]. Cost: O(keys * (k_head_dim + v_head_dim)). Throws: FormatError if a logit is not
/// finite.
Eigen::RowVectorXf sparse_row(const GroupView& group, const AttentionRules& rules, Index head,
                              Index row, std::span<const std::int32_t> key_indices);

}  // namespace quoka
