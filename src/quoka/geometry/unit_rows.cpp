#include "quoka/geometry/unit_rows.hpp"

namespace quoka {

UnitRows unit_rows(ConstMatrixView block) {
  UnitRows result{.rows = Matrix::Zero(block.rows(), block.cols()), .norms = VectorD(block.rows())};
  for (Index i = 0; i < block.rows(); ++i) {
    const auto row = block.row(i).cast<double>();
    result.norms[i] = row.norm();
    if (result.norms[i] > 0) {
      result.rows.row(i) = (row / result.norms[i]).cast<float>();
    } else {
      ++result.n_zero;
    }
  }
  return result;
}

}  // namespace quoka
