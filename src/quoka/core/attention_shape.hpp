#pragma once

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Sizes of one attention layer of a capture. Layers of one model may differ.
struct AttentionShape {
  Index n_q_heads = 0;
  Index n_kv_heads = 0;  ///< divides n_q_heads
  Index n_tokens = 0;    ///< T: rows of q
  Index n_keys = 0;      ///< S: rows of k and v, q_offset + n_tokens
  Index k_head_dim = 0;  ///< Dk: columns of q and k
  Index v_head_dim = 0;  ///< Dv: columns of v and of the output

  /// Query heads that share one KV head; query head h reads KV head h / group_size().
  [[nodiscard]] Index group_size() const { return n_q_heads / n_kv_heads; }
  bool operator==(const AttentionShape&) const = default;
};

}  // namespace quoka
