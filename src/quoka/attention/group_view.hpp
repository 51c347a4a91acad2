#pragma once

#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// One KV head and the query heads that read it (a GQA group); tensors owned by somebody else.
struct GroupView {
  std::vector<ConstMatrixView> q;  ///< per query head [n_tokens, k_head_dim]
  ConstMatrixView k;               ///< [n_keys, k_head_dim]
  ConstMatrixView v;               ///< [n_keys, v_head_dim]
  Index kv_head = 0;

  [[nodiscard]] Index group_size() const { return static_cast<Index>(q.size()); }
  /// Index of the layer's query head behind q[head].
  [[nodiscard]] Index q_head(Index head) const { return kv_head * group_size() + head; }
};

}  // namespace quoka
