#include "quoka/geometry/unit_rows.hpp"

#include <cmath>

#include "quoka/core/float64_sums.hpp"

namespace quoka {

double write_unit_row(const float* row, Index n, float* unit) {
  const double norm = std::sqrt(dot_float64(row, row, n));
  const double factor = norm > 0 ? 1.0 / norm : 0.0;
  for (Index i = 0; i < n; ++i) {
    unit[i] = static_cast<float>(static_cast<double>(row[i]) * factor);
  }
  return norm;
}

UnitRows unit_rows(ConstMatrixView block) {
  UnitRows result{.rows = Matrix(block.rows(), block.cols()), .norms = VectorD(block.rows())};
  for (Index i = 0; i < block.rows(); ++i) {
    const Index first = i * block.cols();
    result.norms[i] =
        write_unit_row(block.data() + first, block.cols(), result.rows.data() + first);
    result.n_zero += result.norms[i] > 0 ? 0 : 1;
  }
  return result;
}

}  // namespace quoka
