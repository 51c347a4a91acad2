#pragma once

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Rows of a block divided by their own L2 norm.
struct UnitRows {
  Matrix rows;    ///< [n, head_dim]; a zero row stays zero, so its cosine with everything is 0
  VectorD norms;  ///< [n]
  Index n_zero = 0;
};

/// Normalises each row. Norms and divisions in float64, so no finite float32 row over- or
/// underflows. Cost: O(n * head_dim).
UnitRows unit_rows(ConstMatrixView block);

}  // namespace quoka
