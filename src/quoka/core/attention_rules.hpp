#pragma once

#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// How an ALiBi bias enters the logits.
enum class Alibi {
  none,
  plain,   ///< + slope * (key_pos - query_pos), added after scaling (MPT)
  scaled,  ///< the bias is multiplied by the softmax scale too (Falcon)
};

/// Everything that shapes the softmax of one layer besides q, k and v.
///
/// logit = scale * q.k; then softcap * tanh(logit / softcap) if softcap > 0; then the ALiBi bias;
/// then the mask; then softmax over the visible keys, with the head's sink logit in the denominator
/// only.
///
/// A key is visible to a query if key_pos <= query_pos, and within the window (query_pos - key_pos
/// < sliding_window, the query itself included), and in the same attention chunk.
struct AttentionRules {
  double scale = 1.0;         ///< softmax multiplier, > 0, never derived from the head size
  Index q_offset = 0;         ///< absolute position of row 0 of q
  Index sliding_window = 0;   ///< keys a query may see, itself included; 0 = no window
  Index attention_chunk = 0;  ///< width of Llama 4 style chunks; 0 = none
  double softcap = 0.0;       ///< applied cap of the logits; 0 = none
  Alibi alibi = Alibi::none;
  std::vector<float> sinks = {};         ///< [n_q_heads] sink logits, or empty
  std::vector<float> alibi_slopes = {};  ///< [n_q_heads], or empty
};

}  // namespace quoka
