#pragma once

#include <cstdint>
#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Positions of the n best scores, ascending; of equal scores at the cut the lower positions.
///
/// Finds the cut with a histogram over the leading bits of the scores, so that only the scores in
/// the bin of the cut are compared with each other.
///
/// Units / range: scores are not NaN; n >= 0; all positions if n >= scores.size().
/// Cost: O(scores). Source: QUOKA (arXiv 2602.08722), Algorithm 1, line 11.
std::vector<std::int32_t> best_keys(const Vector& scores, Index n);

}  // namespace quoka
