#pragma once

/// What one configuration of a key selector is: plain data with the paper's values as defaults. How
/// a configuration is read, printed and named is in parameters.hpp.

#include <cstdint>

#include "quoka/core/matrix.hpp"
#include "quoka/selection/budget.hpp"

namespace quoka {

/// Which method decides which keys are kept.
enum class SelectorKind {
  quoka,             ///< the paper's method and every variant of its steps
  oracle,            ///< best keys by true attention probability: the ceiling of mass recall
  random,            ///< a random set per KV head and chunk: the floor
  sink_recent,       ///< the first keep_first keys, the rest most recent (StreamingLLM)
  keydiff,           ///< keys least similar to the mean key (KeyDiff)
  snapkv,            ///< attention of the chunk's last rows, pooled over neighbouring keys (SnapKV)
  sample_attention,  ///< attention of evenly spaced rows, summed (SampleAttention)
  sparq,             ///< approximate attention from the largest query channels (SparQ)
  loki,              ///< approximate attention in the keys' principal components (Loki)
  less_is_more,      ///< one set for all heads, chosen by another layer's attention (LessIsMore)
};

/// Which rows of the chunk score the keys.
enum class QueryRule {
  lowest_cosine,  ///< least similar to the mean query (the paper)
  highest_cosine,
  largest_norm,
  random,
  stride,  ///< i-th kept row = floor((i + 0.5) C / n)
  first,
  last,
  farthest_point,  ///< start at lowest cosine, then the row farthest from those kept
  all,             ///< every row; n_sel_queries is ignored
};

/// per_head: each query head keeps its own rows (the paper). per_group: the group's heads share
/// them.
enum class QueryScope { per_head, per_group };

/// The mean query is the mean of the raw rows (the paper) or of the unit rows.
enum class QueryMean { raw, normalized };

/// cosine (the paper), raw dot product, or exact attention probability of the kept rows.
enum class Score { cosine, dot, softmax };

/// Slot j of a head is its j-th kept row in rank order (the paper, literally) or in position order.
enum class Pairing { rank, position };

/// How the heads of a group become one score per key.
enum class HeadAggregation {
  mean_first,  ///< average the heads' kept rows slot by slot, then aggregate over slots (the paper)
  mean_after,  ///< aggregate over slots per head, then average the heads
  max_after,
};

/// How the slots become one score per key.
enum class QueryAggregation { max, mean };

/// history: only keys before the chunk compete, the chunk's own keys are always attended.
/// cache: the chunk's keys compete too and nothing is added.
enum class Candidates { history, cache };

/// One configuration: which keys each chunk of a chunked prefill keeps.
struct SelectorConfig {
  SelectorKind selector = SelectorKind::quoka;
  Index chunk_size = 128;                   ///< rows per chunk, >= 1 (paper: B_CP = 128)
  Index chunk_offset = 0;                   ///< rows of the first chunk when > 0; < chunk_size
  Budget budget = Budget::from_keys(1024);  ///< paper: B_SA = 1024
  Index n_sel_queries = 16;  ///< rows kept per chunk and head, >= 1 (paper: N_Q = 16)
  QueryRule query_rule = QueryRule::lowest_cosine;
  QueryScope query_scope = QueryScope::per_head;
  QueryMean query_mean = QueryMean::raw;
  Score score = Score::cosine;
  Pairing pairing = Pairing::rank;
  HeadAggregation head_aggregation = HeadAggregation::mean_first;
  QueryAggregation query_aggregation = QueryAggregation::max;
  Candidates candidates = Candidates::history;
  Index keep_first = 0;           ///< first candidates always kept, inside the budget
  Index keep_recent = 0;          ///< most recent candidates always kept, inside the budget
  std::uint64_t seed = 0;         ///< of random choices
  Index observation_window = 32;  ///< snapkv: last rows that score, >= 1 (its published code: 32)
  Index pool_size = 5;  ///< snapkv: neighbouring keys averaged, odd (its published code: 5)
  /// sparq, loki: channels or components that score, a number or a share of head_dim
  /// (Loki's default: 25 %; SparQ's 32 of 128 is the same)
  Budget n_channels = Budget::parse("25%");
  Index source_layer = 0;  ///< less_is_more: layer whose attention selects (ours: the first)

  bool operator==(const SelectorConfig&) const = default;
};

}  // namespace quoka
