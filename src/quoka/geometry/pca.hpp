#pragma once

#include <span>
#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Two variances whose difference is at most this share of the larger one are nearly equal: their
/// directions can turn into each other when a few rows change, so neither means much by itself.
constexpr double near_equal_gap = 0.01;

/// Principal components of rows: the directions of largest variance around the mean row.
struct Pca {
  VectorD mean;                  ///< [head_dim]
  MatrixD basis;                 ///< [head_dim, head_dim] one unit direction per row
  VectorD variances;             ///< [head_dim] descending, >= 0
  std::vector<bool> near_equal;  ///< [head_dim] nearly as large as the variance before or after it
};

/// Components of the rows of all blocks together, by the eigenvectors of their covariance.
///
/// Sign rule: the loading of largest magnitude is positive (equal ones: the first). Coordinates
/// follow, since they are products with this basis; eigenvectors alone have no sign, and plots of
/// two runs would be mirrored.
///
/// Shapes: blocks [n, head_dim], at least one row in all. Divisor n - 1; a single row has variance
/// 0. Float64. Cost: O(n * head_dim^2 + head_dim^3); holds one block of 256 rows.
/// Throws: ShapeError if there is no row or the widths differ.
Pca principal_components(std::span<const ConstMatrixView> blocks);

/// Products of the centred rows with the first n components.
/// Shapes: rows [m, head_dim], 1 <= n <= head_dim; returns [m, n].
MatrixD pca_coordinates(const Pca& pca, const ConstMatrixView& rows, Index n);

}  // namespace quoka
