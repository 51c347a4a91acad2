#include "quoka/replay/source_scores.hpp"

#include <set>

#include "quoka/attention/dense.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/parallel.hpp"
#include "quoka/replay/chunk_plan.hpp"

namespace quoka {
namespace {

LayerInput source_layer(const LayerInput& layer, Index layer_idx) {
  if (layer_idx == layer.layer_idx) {
    return layer;
  }
  require<ConfigError>(
      static_cast<bool>(layer.other_layer),
      "source_layer {} cannot be read for layer {} (less_is_more reuses its choice)", layer_idx,
      layer.layer_idx);
  LayerInput source = layer.other_layer(layer_idx);
  require<ShapeError>(source.shape.n_tokens == layer.shape.n_tokens &&
                          source.rules.q_offset == layer.rules.q_offset,
                      "source_layer {} has {} tokens from position {}, layer {} has {} from {}",
                      layer_idx, source.shape.n_tokens, source.rules.q_offset, layer.layer_idx,
                      layer.shape.n_tokens, layer.rules.q_offset);
  return source;
}

/// Adds one source layer's probabilities to every chunk.
void add_layer(const LayerInput& source, const std::vector<IndexRange>& chunks, int n_threads,
               SourceScores& scores) {
  for (Index kv_head = 0; kv_head < source.shape.n_kv_heads; ++kv_head) {
    const HeadGroup tensors = source.load_group(kv_head);
    const GroupView group = group_view(tensors, kv_head);
    parallel_for(static_cast<Index>(chunks.size()), n_threads, [&](Index chunk, int) {
      const auto c = static_cast<std::size_t>(chunk);
      const DenseChunk dense = dense_chunk(group, source.rules, chunks[c]);
      scores[c].at(source.layer_idx).segment(dense.keys.begin, dense.keys.size()) += dense.pooled;
    });
  }
}

}  // namespace

SourceScores source_scores(const LayerInput& layer, const SharedChunking& chunking,
                           std::span<const SelectorConfig> configs, int n_threads) {
  std::set<Index> sources;
  for (const Index config : chunking.config_indices) {
    const SelectorConfig& selector = configs[static_cast<std::size_t>(config)];
    if (selector.selector == SelectorKind::less_is_more) {
      sources.insert(selector.source_layer);
    }
  }
  const std::vector<IndexRange> chunks =
      chunk_rows(layer.shape.n_tokens, chunking.chunk_size, chunking.chunk_offset);
  SourceScores scores(chunks.size());
  for (const Index layer_idx : sources) {
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      scores[c][layer_idx] = VectorD::Zero(layer.rules.q_offset + chunks[c].end);
    }
    add_layer(source_layer(layer, layer_idx), chunks, n_threads, scores);
  }
  return scores;
}

}  // namespace quoka
