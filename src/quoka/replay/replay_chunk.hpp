#pragma once

#include <map>
#include <span>
#include <vector>

#include "quoka/replay/cell_store.hpp"
#include "quoka/replay/shared_plan.hpp"
#include "quoka/selection/chunk_context.hpp"

namespace quoka {

/// Number of rows on which the float32 dense output is compared with a float64 one.
constexpr Index n_floor_rows = 64;

/// Measurements of the dense pass of one chunking and KV head; no selector is involved.
struct DenseStore {
  MatrixD
      sink_mass;  ///< [n_chunks, group_size] sum over rows of p on the first sink_size positions
  MatrixD floor_errors;  ///< [n_floor_rows, group_size] relative error of dense; NaN if undefined
};

/// One KV head being replayed: inputs shared by its chunks, and the stores that they fill.
struct GroupReplay {
  const LayerInput& layer;
  const ReplaySettings& settings;
  std::span<const SelectorConfig> configs;
  const GroupView& group;
  const Matrix& unit_keys;                   ///< [n_keys, k_head_dim]
  Index n_zero_keys;                         ///< zero rows of k
  std::vector<Index> n_zero_queries;         ///< per query head of the group
  std::vector<CellStore>& cells;             ///< per configuration
  std::vector<std::vector<KeptKeys>>& kept;  ///< per configuration, per chunk; only if selections
};

/// One chunk of a chunking.
struct ChunkTask {
  IndexRange rows;
  Index chunk = 0;                                          ///< its index
  const std::map<Index, VectorD>* source_pooled = nullptr;  ///< see ChunkContext
};

/// Replays one chunk of one KV head: dense once, each score vector once, each key order once.
/// Chunks may run on different threads.
void replay_chunk(const GroupReplay& replay, const SharedChunking& chunking, const ChunkTask& task,
                  DenseStore& dense_store);

}  // namespace quoka
