#include "quoka/geometry/mean_query.hpp"

namespace quoka {

MeanSimilarity similarity_to_mean(ConstMatrixView rows, ConstMatrixView averaged) {
  const VectorD mean = averaged.cast<double>().colwise().mean();
  const double mean_norm = mean.norm();
  MeanSimilarity result{.cosines = VectorD::Zero(rows.rows()), .zero_mean = mean_norm == 0};
  if (result.zero_mean) {
    return result;
  }
  const VectorD direction = mean / mean_norm;
  for (Index i = 0; i < rows.rows(); ++i) {
    const auto row = rows.row(i).cast<double>();
    const double norm = row.norm();
    if (norm > 0) {
      result.cosines[i] = row.dot(direction.transpose()) / norm;
    }
  }
  return result;
}

}  // namespace quoka
