#pragma once

#include "quoka/replay/key_walk.hpp"
#include "quoka/replay/prefix_attention.hpp"

namespace quoka {

/// Row metrics of all lanes when the first n keys of the order are kept: [n_row_metrics, lanes];
/// NaN where undefined and in empty rows.
///
/// Cost: O(v_head_dim * lanes).
Matrix measure_rows(const KeyWalk& walk, const PrefixSums& sums, Index n_keys);

}  // namespace quoka
