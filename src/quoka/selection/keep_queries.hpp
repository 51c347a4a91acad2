#pragma once

#include <vector>

#include "quoka/selection/chunk_context.hpp"

namespace quoka {

/// Rows that each query head of the group keeps to score the keys: local row indices in slot order.
using KeptQueries = std::vector<std::vector<Index>>;

/// Keeps n_sel_queries rows per head by the configuration's query_rule, ties to the lower position.
///
/// If the chunk has no more rows than n_sel_queries, all are kept in position order. Slots are in
/// rank order or in position order (`pairing`). Returns: group_size lists of min(n_rows,
/// n_sel_queries) rows (n_rows for QueryRule::all). Cost: O(n_rows log n_rows) per head;
/// farthest_point O(n_sel_queries * n_rows * head_dim). Source: QUOKA (arXiv 2602.08722), Algorithm
/// 1, lines 1 to 4.
KeptQueries keep_queries(const ChunkContext& context, const SelectorConfig& config);

/// n of n_rows rows, each in the middle of its share: floor((i + 0.5) n_rows / n).
std::vector<Index> evenly_spaced_rows(Index n_rows, Index n);

/// True if the configuration sub-selects rows of this chunk by their similarity to a mean query
/// that is the zero vector in the given head (every similarity is then 0 and the lowest positions
/// win).
bool uses_zero_mean(const ChunkContext& context, const SelectorConfig& config, Index head);

}  // namespace quoka
