#pragma once

/// One chunk of sparse prefill as an inference engine would run it: the paper's method with nothing
/// measured and nothing shared between configurations. Comes in: one GQA group and its unit keys.
/// Goes out: the attention output. The stages are separate functions so that they can be timed;
/// they keep the same keys as the selection room with its defaults.

#include <cstdint>
#include <span>

#include "quoka/attention/blocked.hpp"

namespace quoka {

/// What an engine can set; candidates are the history, the chunk itself is always attended.
struct PrefillSettings {
  Index budget = 1024;  ///< history keys kept per KV head, >= 1 (paper: B_SA = 1024)
  Index n_sel_queries =
      16;  ///< rows per chunk and head that score the keys, >= 1 (paper: N_Q = 16)
};

/// Throws: ConfigError if the layer limits what a key's position may be (window, attention chunk)
/// or biases by position (ALiBi): gathered keys have no positions.
void check_prefill_rules(const AttentionRules& rules);

/// Kept keys and values, one behind the other.
struct GatheredKeys {
  Matrix k;  ///< [n, k_head_dim], not normalised
  Matrix v;  ///< [n, v_head_dim]
};

/// Copies the keys at these absolute positions. Source: QUOKA, Algorithm 1, line 12.
GatheredKeys gather_keys(const GroupView& group, std::span<const std::int32_t> keys);

/// Attention of the rows to the gathered history and to their own chunk.
/// Throws: FormatError if a logit is not finite.
AttentionOutput attend_kept(const GroupView& group, const AttentionRules& rules, IndexRange rows,
                            const GatheredKeys& kept);

/// All stages of one (chunk, KV head); dense if the history is within the budget.
///
/// Shapes: unit_keys [at least q_offset + rows.begin, k_head_dim]: the history's
/// (geometry/unit_rows).
/// Cost: 2 n_sel_queries history k_head_dim operations to select, n_sel_queries rounded up to a
/// multiple of 16, and 2 group_size rows (budget + rows) (k_head_dim + v_head_dim) to attend.
/// Throws: ConfigError as check_prefill_rules; FormatError if a logit is not finite.
/// Source: QUOKA (arXiv 2602.08722), Algorithms 1 and 2.
AttentionOutput prefill_chunk(const GroupView& group, const AttentionRules& rules, IndexRange rows,
                              const ConstMatrixView& unit_keys, const PrefillSettings& settings);

}  // namespace quoka
