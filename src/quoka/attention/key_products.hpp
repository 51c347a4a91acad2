#pragma once

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Products of every query row with every key row.
///
/// Identical keys get identical products wherever they stand: each key goes through the same
/// instruction sequence. A plain matrix product does not promise that (its last columns take
/// another kernel with another order of additions), and repeated keys would then not tie exactly.
///
/// Shapes: queries [m, head_dim], keys [n, head_dim], products [m, n].
/// Cost: 2 m n head_dim operations.
void key_products(const Eigen::Ref<const Matrix>& queries, const ConstMatrixView& keys,
                  Eigen::Ref<Matrix, 0, Eigen::OuterStride<>> products);

}  // namespace quoka
