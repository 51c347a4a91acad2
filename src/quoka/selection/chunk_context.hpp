#pragma once

/// What a selector may look at for one (chunk, KV head): the chunk's queries, the candidate keys
/// and the dense probabilities of the chunk's rows. Nothing after the chunk is in it.

#include <cstdint>
#include <map>
#include <vector>

#include "quoka/attention/dense.hpp"
#include "quoka/geometry/mean_query.hpp"
#include "quoka/geometry/unit_rows.hpp"
#include "quoka/selection/config.hpp"

namespace quoka {

/// Measurements of one query head's rows in the chunk.
struct HeadQueries {
  UnitRows unit;                      ///< [n_rows, head_dim]
  MeanSimilarity to_raw_mean;         ///< to the mean of the raw rows
  MeanSimilarity to_normalized_mean;  ///< to the mean of the unit rows
};

/// Everything about one (chunk, KV head); the referenced objects outlive it.
struct ChunkContext {
  const GroupView& group;
  const Matrix& unit_keys;  ///< [n_keys, head_dim] unit rows of group.k
  const DenseChunk& dense;
  std::vector<HeadQueries> queries;  ///< per query head of the group
  const AttentionRules& rules;
  Index layer_idx = 0;
  /// less_is_more: per source layer its dense probability per key, summed over the chunk's rows and
  /// all heads: [chunk_end]; null without such a configuration.
  const std::map<Index, VectorD>* source_pooled = nullptr;

  [[nodiscard]] Index n_rows() const { return dense.rows.size(); }
  /// Absolute position of the chunk's first row: the end of its history.
  [[nodiscard]] Index chunk_begin() const { return rules.q_offset + dense.rows.begin; }

  /// Absolute positions of the keys that compete: those that at least one row of the chunk may see.
  /// One range, because the first row sees farthest back.
  [[nodiscard]] IndexRange candidates(Candidates which) const {
    return {dense.keys.begin, which == Candidates::history ? chunk_begin() : dense.keys.end};
  }
};

/// Measures the chunk's queries. Cost: O(group_size * n_rows * head_dim).
std::vector<HeadQueries> measure_queries(const GroupView& group, IndexRange rows);

}  // namespace quoka
