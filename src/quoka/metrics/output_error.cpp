#include "quoka/metrics/output_error.hpp"

#include <cmath>
#include <limits>

namespace quoka {

float ratio_or_nan(double part, double whole) {
  return whole < smallest_denominator ? std::numeric_limits<float>::quiet_NaN()
                                      : static_cast<float>(part / whole);
}

OutputError output_error(Eigen::Ref<const Eigen::RowVectorXf> sparse,
                         Eigen::Ref<const Eigen::RowVectorXf> dense) {
  const auto s = sparse.cast<double>();
  const auto d = dense.cast<double>();
  const double dense_norm = std::sqrt(d.squaredNorm());
  const double sparse_norm = std::sqrt(s.squaredNorm());
  const bool has_cosine = sparse_norm >= smallest_denominator && dense_norm >= smallest_denominator;
  return {ratio_or_nan(std::sqrt((s - d).squaredNorm()), dense_norm),
          has_cosine ? ratio_or_nan(s.dot(d), sparse_norm * dense_norm)
                     : std::numeric_limits<float>::quiet_NaN(),
          (sparse - dense).cwiseAbs().maxCoeff()};
}

}  // namespace quoka
