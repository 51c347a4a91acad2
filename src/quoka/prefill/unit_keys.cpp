#include "quoka/prefill/unit_keys.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

/// Keys per panel, and slots that are scored together: 8 x 32 sums fill half of the 32 registers of
/// 16 floats.
constexpr Index width = 32;
constexpr Index slot_tile = 8;

using Lane = Eigen::Array<float, width, 1>;

/// Divides each column of a panel by its norm, in float64 and with the operations of
/// geometry/unit_rows in the same order: the same unit vectors, 32 at a time. Loops of constant
/// length over plain arrays, because Eigen does not vectorise the change to double.
///
/// Shapes: panel [head_dim, width].
void normalize_columns(float* panel, Index head_dim) {
  std::array<double, width> norms{};
  for (const float* row = panel; row != panel + head_dim * width; row += width) {
    for (std::size_t i = 0; i < width; ++i) {
      const auto value = static_cast<double>(row[i]);
      norms[i] += value * value;
    }
  }
  for (double& norm : norms) {
    norm = norm > 0 ? std::sqrt(norm) : 1.0;  // a zero key stays zero
  }
  for (float* row = panel; row != panel + head_dim * width; row += width) {
    for (std::size_t i = 0; i < width; ++i) {
      row[i] = static_cast<float>(static_cast<double>(row[i]) / norms[i]);
    }
  }
}

/// Largest product of each key of a panel with `slot_tile` slots.
///
/// Every sum runs over the channels in order, as in Eigen's matrix product, so the scores are those
/// of the selection room to the last bit. Constant indices keep the sums in registers.
///
/// Shapes: panel [head_dim, width], slots [head_dim, slot_tile].
template <std::size_t... Slot>
Lane best_of_tile(const float* panel, const float* slots, Index head_dim,
                  std::index_sequence<Slot...>) {
  std::array<Lane, slot_tile> sums;
  ((sums[Slot] = Lane::Zero()), ...);
  for (Index channel = 0; channel < head_dim; ++channel) {
    const Lane keys = Eigen::Map<const Lane>(panel + channel * width);
    const float* const at = slots + channel * slot_tile;
    ((sums[Slot] += keys * at[Slot]), ...);
  }
  Lane best = sums[0];
  ((best = best.max(sums[Slot])), ...);
  return best;
}

/// Slots channel by channel in tiles; the last tile is filled up with the first slot, which cannot
/// change a maximum. Shapes: [tiles * head_dim, slot_tile].
Matrix tiled(const Matrix& slots) {
  const Index n_tiles = (slots.rows() + slot_tile - 1) / slot_tile;
  Matrix tiles(n_tiles * slots.cols(), slot_tile);
  for (Index slot = 0; slot < n_tiles * slot_tile; ++slot) {
    tiles.col(slot % slot_tile).segment(slot / slot_tile * slots.cols(), slots.cols()) =
        slots.row(slot < slots.rows() ? slot : 0).transpose();
  }
  return tiles;
}

}  // namespace

UnitKeys::UnitKeys(Index capacity, Index head_dim)
    : panels_(Matrix::Zero((capacity + width - 1) / width * head_dim, width)),
      head_dim_(head_dim) {}

void UnitKeys::append(const ConstMatrixView& keys) {
  require<ShapeError>(keys.cols() == head_dim_ &&
                          (size_ + keys.rows() + width - 1) / width * head_dim_ <= panels_.rows(),
                      "{} keys of {} channels do not fit behind {} keys of {} channels with room "
                      "for {} (the unit keys take their memory once); make them with more room",
                      keys.rows(), keys.cols(), size_, head_dim_,
                      panels_.rows() / head_dim_ * width);
  Matrix panel = Matrix::Zero(head_dim_, width);
  for (Index begin = 0; begin < keys.rows();) {
    const Index column = size_ % width;
    const Index n = std::min(width - column, keys.rows() - begin);
    panel.leftCols(n) = row_view(keys, {begin, begin + n}).transpose();
    normalize_columns(panel.data(), head_dim_);
    panels_.block(size_ / width * head_dim_, column, head_dim_, n) = panel.leftCols(n);
    begin += n;
    size_ += n;
  }
}

void UnitKeys::truncate(Index n) { size_ = std::min(size_, n); }

Vector UnitKeys::best_scores(const Matrix& slots, Index n_keys) const {
  QUOKA_ASSERT(slots.rows() > 0 && slots.cols() == head_dim_ && n_keys <= size_);
  constexpr auto every_slot = std::make_index_sequence<slot_tile>();
  const Matrix tiles = tiled(slots);
  const Index tile_size = head_dim_ * slot_tile;
  Vector scores((n_keys + width - 1) / width * width);
  for (Index key = 0; key < n_keys; key += width) {
    const float* const panel = panels_.data() + key * head_dim_;
    Lane best = best_of_tile(panel, tiles.data(), head_dim_, every_slot);
    for (Index tile = tile_size; tile < tiles.size(); tile += tile_size) {
      best = best.max(best_of_tile(panel, tiles.data() + tile, head_dim_, every_slot));
    }
    scores.segment<width>(key) = best;
  }
  scores.conservativeResize(n_keys);
  return scores;
}

}  // namespace quoka
