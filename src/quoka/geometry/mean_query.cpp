#include "quoka/geometry/mean_query.hpp"

namespace quoka {

MeanSimilarity similarity_to_mean(ConstMatrixView rows, MeanOf mean_of) {
  VectorD norms(rows.rows());
  VectorD sum = VectorD::Zero(rows.cols());
  for (Index i = 0; i < rows.rows(); ++i) {
    const VectorD row = rows.row(i).cast<double>();
    norms[i] = row.norm();
    if (norms[i] > 0) {
      sum += mean_of == MeanOf::raw_rows ? row : row / norms[i];
    }
  }
  MeanSimilarity result{.cosines = VectorD::Zero(rows.rows()), .zero_mean = sum.norm() == 0};
  if (result.zero_mean) {
    return result;
  }
  const VectorD direction = sum.normalized();
  for (Index i = 0; i < rows.rows(); ++i) {
    if (norms[i] > 0) {
      const VectorD row = rows.row(i).cast<double>();
      result.cosines[i] = row.dot(direction) / norms[i];
    }
  }
  return result;
}

}  // namespace quoka
