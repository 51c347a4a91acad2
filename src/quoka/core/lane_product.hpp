#pragma once

/// Matrix products whose columns are lanes: what attention spends its time on.
///
/// Eigen's product copies both factors into its own order first. Here the lanes already lie in the
/// order in which they are read, and the left factor is read number by number wherever it lies, so
/// nothing is copied, and products as flat as 16 lanes run at full rate.

#include "quoka/core/lanes.hpp"

namespace quoka {

/// Lanes that are worked on together. A right factor of this many lanes, each row behind the one
/// before, stays in the innermost cache.
constexpr Index lane_panel = 4 * lane_width;

/// Left factor of a lane product: rows of a block as they are, or turned.
using StridedView = Eigen::Map<const Matrix, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
/// Rows of lanes: as an argument, read only, and to be written.
using ConstLanes = Eigen::Ref<const Matrix, 0, Eigen::OuterStride<>>;
using LanesView = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
using Lanes = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;

inline StridedView as_is(const ConstMatrixView& block) {
  return {block.data(), block.rows(), block.cols(), {block.cols(), 1}};
}
inline StridedView turned(const ConstMatrixView& block) {
  return {block.data(), block.cols(), block.rows(), {1, block.cols()}};
}

/// Rows of a block of lanes.
inline Lanes lanes(Matrix& block, IndexRange rows) {
  return {block.data() + rows.begin * block.cols(), rows.size(), block.cols(),
          Eigen::OuterStride<>(block.cols())};
}
inline Lanes lanes(Matrix& block) { return lanes(block, {0, block.rows()}); }

/// product = left * right. Every sum runs over the inner index in order, whatever the shapes: equal
/// rows and lanes give equal numbers wherever they lie.
///
/// Shapes: left [m, n], right [n, lanes], product [m, lanes]; lanes a multiple of lane_width.
/// Cost: 2 m n lanes operations.
void lane_product(const StridedView& left, const ConstLanes& right, Lanes product);

/// product += left * right; the sum of the product is complete before it is added. As above.
void add_lane_product(const StridedView& left, const ConstLanes& right, Lanes product);

}  // namespace quoka
