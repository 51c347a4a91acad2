#pragma once

#include <vector>

#include "quoka/attention/group_view.hpp"
#include "quoka/core/attention_rules.hpp"
#include "quoka/study/score_tails.hpp"
#include "quoka/study/settings.hpp"

namespace quoka {

/// What the chunks say of one query head.
struct HeadChunks {
  VectorD similarity;                ///< [n_tokens] cosine with the mean query of the row's chunk
  VectorD norms;                     ///< [n_tokens]
  std::vector<Index> classes;        ///< [n_tokens] see similarity_classes
  std::vector<bool> kept;            ///< [n_tokens] kept to score the keys
  DeviationStatistics over_queries;  ///< of the kept queries' scores of one key
};

/// What the chunks say of one KV head.
struct GroupChunks {
  std::vector<HeadChunks> heads = {};   ///< [group_size]
  VectorD key_norms;                    ///< [n_keys]
  VectorD n_competed;                   ///< [n_keys] active chunks in which the key was a candidate
  VectorD n_kept;                       ///< [n_keys] those that kept it
  DeviationStatistics over_heads = {};  ///< of one slot's scores of one key
};

/// Queries fall into this many classes of equal size by their similarity to the mean query: class 0
/// is the eighth of each chunk that the paper keeps at its defaults (16 of 128 rows).
constexpr Index n_similarity_classes = 8;

/// Class of each row of a chunk: floor(8 rank / n), rank by similarity ascending, ties to the lower
/// row.
std::vector<Index> similarity_classes(const VectorD& similarity);

/// Measures the queries chunk by chunk, and selects keys as the marked selection does.
///
/// Scores are cosines of kept queries with the sampled keys that are candidates (no aggregation).
/// key_samples: ascending absolute positions.
/// Cost: O(n_tokens * head_dim) per head, plus chunks * n_sel_queries * keys * head_dim.
/// Throws: FormatError as score_candidates.
GroupChunks measure_chunks(const GroupView& group, const AttentionRules& rules,
                           const StudySettings& settings, const std::vector<Index>& key_samples);

}  // namespace quoka
