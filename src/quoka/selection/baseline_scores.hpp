#pragma once

/// Scores of the methods that QUOKA is compared with, at equal budget and in the same replay. Each
/// scores once per (chunk, KV head), looks at nothing after the chunk, and extends a score for one
/// query to the chunk's rows and the group's heads by summing, as the QUOKA paper does for them.
/// Shapes: all return [candidates.size()]; higher is kept first.

#include "quoka/selection/chunk_context.hpp"

namespace quoka {

/// Minus the cosine of each key with the mean of the unit candidate keys: no query is looked at.
/// Source: KeyDiff (arXiv 2504.15364).
VectorD score_keydiff(const ChunkContext& context, IndexRange candidates);

/// Attention probability of the last observation_window rows, summed over rows and heads, then
/// averaged over pool_size neighbouring candidates (zeros beyond the ends). Source: SnapKV (arXiv
/// 2404.14469), section 4; its code pools with a mean of 5 and observes 32 rows.
VectorD score_snapkv(const ChunkContext& context, const SelectorConfig& config,
                     IndexRange candidates);

/// Attention probability of n_sel_queries evenly spaced rows, summed over rows and heads. Its local
/// window is the chunk itself and keep_recent.
/// Source: SampleAttention (arXiv 2406.15486), stage 1; the original samples about 5 % of all rows.
VectorD score_sample_attention(const ChunkContext& context, const SelectorConfig& config,
                               IndexRange candidates);

/// Approximate attention over the candidates each row may see, from the n_channels channels of a
/// head with the largest mean |q| over the chunk; the softmax is widened by the share of |q| in
/// those channels, as in the original; summed over rows and heads. Without its mean-value
/// correction, which changes the output and not the set. Sink logits are left out. Source: SparQ
/// (arXiv 2312.04985), Algorithm 1, steps 1 and 2.
VectorD score_sparq(const ChunkContext& context, const SelectorConfig& config,
                    IndexRange candidates);

/// Product of the mean query with the keys in the first n_channels principal components of the
/// candidate keys: the mean over rows and heads of the projected products.
/// Source: Loki (arXiv 2406.02542), Algorithm 1; its basis comes from calibration text, ours from
/// the keys at hand.
VectorD score_loki(const ChunkContext& context, const SelectorConfig& config,
                   IndexRange candidates);

}  // namespace quoka
