#include "quoka/geometry/pca.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

constexpr Index rows_at_once = 256;

/// Calls use(rows as float64) for every block in pieces of at most rows_at_once.
template <typename Use>
void for_each_piece(std::span<const ConstMatrixView> blocks, const Use& use) {
  for (const ConstMatrixView& block : blocks) {
    for (Index begin = 0; begin < block.rows(); begin += rows_at_once) {
      const IndexRange rows{begin, std::min(begin + rows_at_once, block.rows())};
      use(MatrixD(row_view(block, rows).cast<double>()));
    }
  }
}

void apply_sign_rule(MatrixD& basis) {
  for (Index i = 0; i < basis.rows(); ++i) {
    Index largest = 0;
    basis.row(i).cwiseAbs().maxCoeff(&largest);  // the first of equal ones
    if (basis(i, largest) < 0) {
      basis.row(i) *= -1;
    }
  }
}

std::vector<bool> flag_near_equal(const VectorD& variances) {
  std::vector<bool> flags(static_cast<std::size_t>(variances.size()), false);
  for (Index i = 0; i + 1 < variances.size(); ++i) {
    if (variances[i] - variances[i + 1] <= near_equal_gap * variances[i]) {
      flags[static_cast<std::size_t>(i)] = true;
      flags[static_cast<std::size_t>(i + 1)] = true;
    }
  }
  return flags;
}

}  // namespace

Pca principal_components(std::span<const ConstMatrixView> blocks) {
  require<ShapeError>(!blocks.empty(), "no block of rows (principal components need a row)");
  const Index width = blocks.front().cols();
  Index n = 0;
  for (const ConstMatrixView& block : blocks) {
    require<ShapeError>(block.cols() == width,
                        "blocks have {} and {} columns (their rows are compared)", width,
                        block.cols());
    n += block.rows();
  }
  require<ShapeError>(n > 0, "blocks without rows (principal components need a row)");
  Pca pca;
  pca.mean = VectorD::Zero(width);
  for_each_piece(blocks,
                 [&](const MatrixD& rows) { pca.mean += rows.colwise().sum().transpose(); });
  pca.mean /= static_cast<double>(n);
  MatrixD covariance = MatrixD::Zero(width, width);
  for_each_piece(blocks, [&](MatrixD rows) {
    rows.rowwise() -= pca.mean.transpose();
    covariance.noalias() += rows.transpose() * rows;
  });
  covariance /= static_cast<double>(std::max<Index>(1, n - 1));
  const Eigen::SelfAdjointEigenSolver<MatrixD> solver(covariance);
  // Eigen's eigenvalues ascend; rounding can leave the smallest just below zero.
  pca.variances = solver.eigenvalues().reverse().cwiseMax(0.0);
  pca.basis = solver.eigenvectors().rowwise().reverse().transpose();
  apply_sign_rule(pca.basis);
  pca.near_equal = flag_near_equal(pca.variances);
  return pca;
}

MatrixD pca_coordinates(const Pca& pca, const ConstMatrixView& rows, Index n) {
  return (rows.cast<double>().rowwise() - pca.mean.transpose()) * pca.basis.topRows(n).transpose();
}

}  // namespace quoka
