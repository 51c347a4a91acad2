#pragma once

#include "quoka/core/matrix.hpp"

namespace quoka {

/// How similar each row is to the mean row.
struct MeanSimilarity {
  VectorD cosines;         ///< [n] in [-1, 1]; 0 for a zero row, all 0 if the mean is zero
  bool zero_mean = false;  ///< the mean is the zero vector
};

/// Which rows a mean row averages: raw rows, where long ones weigh more, or rows of unit length.
enum class MeanOf { raw_rows, unit_rows };

/// Cosine of each row with the mean row; the paper's mean query is that of the raw rows.
///
/// Shapes: rows [n, head_dim]. Computed in float64 throughout: near-ties decide which queries are
/// kept. Cost: O(n * head_dim). Source: QUOKA (arXiv 2602.08722), Algorithm 1, lines 2 and 3.
MeanSimilarity similarity_to_mean(ConstMatrixView rows, MeanOf mean_of);

}  // namespace quoka
