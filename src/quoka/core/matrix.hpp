#pragma once

#include <Eigen/Core>

namespace quoka {

/// Signed index used everywhere; unsigned sizes exist only at the HDF5 border.
using Index = Eigen::Index;

/// Dense row-major block: one row per token, one column per channel or key.
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using MatrixD = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXf;
using VectorD = Eigen::VectorXd;

/// Read-only view of consecutive rows of a row-major block that somebody else owns.
using ConstMatrixView = Eigen::Map<const Matrix>;

/// Half-open range [begin, end) of tokens, rows or keys.
struct IndexRange {
  Index begin = 0;
  Index end = 0;

  [[nodiscard]] Index size() const { return end > begin ? end - begin : 0; }
  [[nodiscard]] bool contains(Index i) const { return i >= begin && i < end; }
  bool operator==(const IndexRange&) const = default;
};

/// Rows [range) of a row-major block, without a copy.
inline ConstMatrixView row_view(const ConstMatrixView& block, IndexRange range) {
  return {block.data() + range.begin * block.cols(), range.size(), block.cols()};
}

inline ConstMatrixView view(const Matrix& block) {
  return {block.data(), block.rows(), block.cols()};
}

}  // namespace quoka
