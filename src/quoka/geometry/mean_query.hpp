#pragma once

#include "quoka/core/matrix.hpp"

namespace quoka {

/// How similar each row is to the mean row.
struct MeanSimilarity {
  VectorD cosines;         ///< [n] in [-1, 1]; 0 for a zero row, all 0 if the mean is zero
  bool zero_mean = false;  ///< the mean is the zero vector
};

/// Cosine of each row of `rows` with the mean of the rows of `averaged`. For the paper's mean query
/// both are the raw queries; with unit rows as `averaged` every query weighs the same.
///
/// Shapes: rows and averaged [n, head_dim]. Computed in float64: near-ties decide which queries are
/// kept. Cost: O(n * head_dim).
/// Source: QUOKA (arXiv 2602.08722), Algorithm 1, lines 2 and 3.
MeanSimilarity similarity_to_mean(ConstMatrixView rows, ConstMatrixView averaged);

}  // namespace quoka
