#pragma once

#include <map>
#include <span>
#include <vector>

#include "quoka/replay/replay.hpp"
#include "quoka/replay/shared_plan.hpp"

namespace quoka {

/// Per chunk and source layer: the source layer's dense probability per key, summed over the
/// chunk's rows and all its heads, [chunk_end] from key 0.
using SourceScores = std::vector<std::map<Index, VectorD>>;

/// What the less_is_more configurations of a chunking need; empty maps without any.
///
/// Cost: one dense pass of each source layer. Memory: n_tokens * n_keys / (2 * chunk_size) doubles.
/// Throws: ConfigError if a source layer cannot be had, ShapeError if it has other tokens.
SourceScores source_scores(const LayerInput& layer, const SharedChunking& chunking,
                           std::span<const SelectorConfig> configs, int n_threads);

}  // namespace quoka
