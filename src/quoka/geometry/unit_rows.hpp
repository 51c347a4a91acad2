#pragma once

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Rows of a block divided by their own L2 norm.
struct UnitRows {
  Matrix rows;    ///< [n, head_dim]; a zero row stays zero, so its cosine with everything is 0
  VectorD norms;  ///< [n]
  Index n_zero = 0;
};

/// Writes a row divided by its L2 norm, a zero row as zeros, and returns the norm.
/// Shapes: row [n], unit [n], not the same memory.
double write_unit_row(const float* row, Index n, float* unit);

/// Normalises each row. Norms and quotients in float64, so no finite float32 row over- or
/// underflows. Cost: O(n * head_dim).
UnitRows unit_rows(ConstMatrixView block);

}  // namespace quoka
