#include "quoka/attention/key_products.hpp"

namespace quoka {
namespace {

/// Eigen's widest panel: three vectors of 16 floats. Narrower vectors (8, 4) divide it too.
constexpr Index panel = 48;

/// The last keys with rows of zeros up to a whole panel.
Matrix padded_rest(const ConstMatrixView& keys, Index n_full) {
  Matrix padded = Matrix::Zero(panel, keys.cols());
  padded.topRows(keys.rows() - n_full) = row_view(keys, {n_full, keys.rows()});
  return padded;
}

}  // namespace

void key_products(const Eigen::Ref<const Matrix>& queries, const ConstMatrixView& keys,
                  Eigen::Ref<Matrix, 0, Eigen::OuterStride<>> products) {
  const Index n_full = keys.rows() - keys.rows() % panel;
  const Index n_rest = keys.rows() - n_full;
  if (n_full > 0) {
    products.leftCols(n_full).noalias() = queries * row_view(keys, {0, n_full}).transpose();
  }
  if (n_rest > 0) {
    const Matrix rest = queries * padded_rest(keys, n_full).transpose();
    products.rightCols(n_rest) = rest.leftCols(n_rest);
  }
}

}  // namespace quoka
