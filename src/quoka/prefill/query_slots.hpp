#pragma once

#include "quoka/attention/group_view.hpp"

namespace quoka {

/// The queries of a chunk that score the keys: per query head the rows least similar to the head's
/// mean row, made unit vectors, and the heads of the group averaged slot by slot.
///
/// A chunk of at most n_sel_queries rows keeps all of them, in position order.
///
/// Shapes: rows within [0, n_tokens); returns [min(rows.size(), n_sel_queries), k_head_dim].
/// Cost: O(group_size * rows * k_head_dim).
/// Source: QUOKA (arXiv 2602.08722), Algorithm 1, lines 1 to 8.
Matrix query_slots(const GroupView& group, IndexRange rows, Index n_sel_queries);

}  // namespace quoka
