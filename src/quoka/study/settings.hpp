#pragma once

/// The geometry study of a capture: what the paper's figures 2 and 3 and its theorem say, measured
/// on every layer and head. Comes in: layers, one KV head at a time. Goes out: named variables and
/// the bytes of a geometry file (docs/geometry.md). Knows no capture files and no sweeps.

#include <cstdint>
#include <vector>

#include "quoka/selection/config.hpp"

namespace quoka {

/// What a study measures, apart from the layers.
struct StudySettings {
  Index chunk_size = 128;    ///< rows that share a mean query and a selection; 0 = the whole prompt
  Index n_sel_queries = 16;  ///< of the selection whose choices are marked
  Budget budget = Budget::from_keys(1024);  ///< likewise
  Index sink_size = 4;     ///< leading positions that do not count as keys of interest
  Index n_samples = 1024;  ///< most queries, and most keys, that are stored one by one
  std::uint64_t seed = 0;  ///< of the samples
  int n_threads = 1;       ///< never changes a result

  [[nodiscard]] bool whole_prompt() const { return chunk_size == 0; }
  /// Rows of a full chunk of a prompt with n_tokens rows.
  [[nodiscard]] Index rows_per_chunk(Index n_tokens) const {
    return whole_prompt() || chunk_size > n_tokens ? n_tokens : chunk_size;
  }
};

/// The selection whose kept queries and keys a study marks: the paper's, with these sizes. Over the
/// whole prompt all keys compete (a first chunk has no history).
/// Throws: ConfigError if a value is not positive.
SelectorConfig marked_selection(const StudySettings& settings, Index n_tokens);

/// Positions of [0, n) to look at one by one: at most n_samples, ascending, drawn by a hash of seed
/// and stream. More samples contain fewer, and all are taken where n is not larger.
std::vector<Index> sample_positions(Index n, const StudySettings& settings, Index stream);

}  // namespace quoka
