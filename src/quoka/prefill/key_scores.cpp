#include "quoka/prefill/key_scores.hpp"

#include <algorithm>

#include "quoka/core/error.hpp"
#include "quoka/core/lane_product.hpp"
#include "quoka/geometry/unit_rows.hpp"

namespace quoka {
namespace {

/// Keys scored at a time: they and their products stay in the innermost cache.
constexpr Index key_block = 16;

/// The slots as lanes. Lanes beyond the last repeat the first, which cannot change a maximum.
/// Shapes: returns [head_dim, lanes].
Matrix slot_lanes(const Matrix& slots) {
  Matrix result(slots.cols(), padded_lanes(slots.rows()));
  for (Index lane = 0; lane < result.cols(); ++lane) {
    result.col(lane) = slots.row(lane < slots.rows() ? lane : 0).transpose();
  }
  return result;
}

float largest(const float* products, Index n_lanes) {
  Lane best = Eigen::Map<const Lane>(products);
  for (Index l = lane_width; l < n_lanes; l += lane_width) {
    best = best.max(Eigen::Map<const Lane>(products + l));
  }
  return best.maxCoeff();
}

/// Asks for rows before they are needed: a product reads several rows at a time, which hardware
/// does not foresee.
void prefetch(const ConstMatrixView& rows) {
  for (Index i = 0; i < rows.size(); i += lane_width) {
    __builtin_prefetch(rows.data() + i);
  }
}

/// Scores block after block; unit_block(rows) returns the unit vectors of a block.
template <typename UnitBlock>
Vector best_of_blocks(const ConstMatrixView& keys, const Matrix& slots,
                      const UnitBlock& unit_block) {
  QUOKA_ASSERT(slots.rows() > 0);
  const Matrix slots_by_channel = slot_lanes(slots);
  Matrix products(key_block, slots_by_channel.cols());
  Vector scores(keys.rows());
  const auto block_at = [&keys](Index begin) {
    return row_view(keys, {std::min(begin, keys.rows()), std::min(begin + key_block, keys.rows())});
  };
  for (Index begin = 0; begin < keys.rows(); begin += key_block) {
    prefetch(block_at(begin + key_block));
    const ConstMatrixView block = block_at(begin);
    lane_product(as_is(unit_block(block)), slots_by_channel, lanes(products, {0, block.rows()}));
    for (Index key = 0; key < block.rows(); ++key) {
      scores[begin + key] = largest(&products(key, 0), products.cols());
    }
  }
  return scores;
}

}  // namespace

Vector best_products(const ConstMatrixView& unit_keys, const Matrix& slots) {
  return best_of_blocks(unit_keys, slots, [](const ConstMatrixView& block) { return block; });
}

Vector best_cosines(const ConstMatrixView& keys, const Matrix& slots) {
  Matrix unit(key_block, keys.cols());
  return best_of_blocks(keys, slots, [&unit](const ConstMatrixView& block) {
    for (Index i = 0; i < block.rows(); ++i) {
      write_unit_row(block.data() + i * block.cols(), block.cols(), &unit(i, 0));
    }
    return row_view(view(unit), {0, block.rows()});
  });
}

}  // namespace quoka
