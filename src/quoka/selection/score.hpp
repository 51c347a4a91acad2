#pragma once

#include "quoka/selection/chunk_context.hpp"

namespace quoka {

/// One score per candidate key, higher is kept first; empty for selectors without scores.
///
/// quoka: kept queries against keys, aggregated over slots and heads. oracle: pooled probability.
/// less_is_more: pooled probability of another layer. The other methods: baseline_scores.hpp.
/// random, sink_recent: none. No mask is applied: a kept row also scores candidates that it cannot
/// see itself.
///
/// Shapes: returns [candidates(config.candidates).size()] or [0]. Depends on nothing in the
///         configuration but selector, query, score, aggregation and candidates parameters and
///         seed.
/// Cost: quoka 2 * slots * candidates * head_dim operations per head (once for mean_first).
/// Throws: FormatError if a product of query and key overflows float32.
VectorD score_candidates(const ChunkContext& context, const SelectorConfig& config);

}  // namespace quoka
