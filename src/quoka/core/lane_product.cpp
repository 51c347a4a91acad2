#include "quoka/core/lane_product.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

using Packet = Eigen::internal::packet_traits<float>::type;
constexpr Index packet_size = Eigen::internal::packet_traits<float>::size;

constexpr std::size_t vectors_per_lane = lane_width / packet_size;
/// Sums of one tile of the product, in lanes: three quarters of the registers.
constexpr std::size_t tile_sums =
    std::max<std::size_t>(1, EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS * 3 / 4 / vectors_per_lane);
/// Lanes per tile: several where a lane is one register, which saves reading the numbers again.
constexpr std::size_t tile_width = vectors_per_lane == 1 ? 4 : 1;
/// More rows than this are more addresses than there are registers for them.
constexpr std::size_t max_tile_rows = 8;

enum class Into { empty, sum };

/// sum += lanes * number, by the same instruction as Eigen's matrix product (fused where the
/// machine has it): products are equal to Eigen's, whatever the compiler makes of a sum and a
/// product.
void add_product(const float* lanes, float number, Lane& sum) {
  const auto factor = Eigen::internal::pset1<Packet>(number);
  for (Index i = 0; i < lane_width; i += packet_size) {
    float* const at = sum.data() + i;
    Eigen::internal::pstore(at, Eigen::internal::pmadd(Eigen::internal::ploadu<Packet>(lanes + i),
                                                       factor, Eigen::internal::pload<Packet>(at)));
  }
}

/// One tile of the product. Constant indices keep its sums in registers.
template <std::size_t Width, Into into, std::size_t... Sum>
void product_tile(const StridedView& left, Index row, const ConstLanes& right, Index lane,
                  Lanes& product, std::index_sequence<Sum...> /*sums*/) {
  std::array<Lane, sizeof...(Sum)> sums;
  ((sums[Sum] = Lane::Zero()), ...);
  const float* number = left.data() + row * left.outerStride();
  const float* lanes = right.data() + lane;
  const Index inner_stride = left.innerStride();
  const Index outer_stride = left.outerStride();
  const Index right_stride = right.outerStride();
  for (Index inner = left.cols(); inner > 0; --inner) {
    (add_product(lanes + static_cast<Index>(Sum % Width) * lane_width,
                 number[static_cast<Index>(Sum / Width) * outer_stride], sums[Sum]),
     ...);
    number += inner_stride;
    lanes += right_stride;
  }
  const auto target = [&](std::size_t sum) {
    return Eigen::Map<Lane>(&product(row + static_cast<Index>(sum / Width),
                                     lane + static_cast<Index>(sum % Width) * lane_width));
  };
  if constexpr (into == Into::sum) {
    ((target(Sum) += sums[Sum]), ...);
  } else {
    ((target(Sum) = sums[Sum]), ...);
  }
}

/// All rows from `row` on that fill tiles of this height; returns the first row that does not.
template <std::size_t Height, std::size_t Width, Into into>
Index product_rows(const StridedView& left, Index row, const ConstLanes& right, Index lane,
                   Lanes& product) {
  constexpr auto n_rows = static_cast<Index>(Height);
  for (; row + n_rows <= left.rows(); row += n_rows) {
    product_tile<Width, into>(left, row, right, lane, product,
                              std::make_index_sequence<Height * Width>());
  }
  return row;
}

template <std::size_t Width, Into into>
Index product_lanes(const StridedView& left, const ConstLanes& right, Index lane, Lanes& product) {
  constexpr Index n_lanes = static_cast<Index>(Width) * lane_width;
  for (; lane + n_lanes <= right.cols(); lane += n_lanes) {
    Index row = product_rows<std::min(tile_sums / Width, max_tile_rows), Width, into>(
        left, 0, right, lane, product);
    row = product_rows<4, Width, into>(left, row, right, lane, product);
    product_rows<1, Width, into>(left, row, right, lane, product);
  }
  return lane;
}

template <Into into>
void product_into(const StridedView& left, const ConstLanes& right, Lanes& product) {
  QUOKA_ASSERT(left.rows() == product.rows() && left.cols() == right.rows() &&
               right.cols() == product.cols() && right.cols() % lane_width == 0);
  const Index lane = product_lanes<tile_width, into>(left, right, 0, product);
  product_lanes<1, into>(left, right, lane, product);
}

}  // namespace

void lane_product(const StridedView& left, const ConstLanes& right, Lanes product) {
  product_into<Into::empty>(left, right, product);
}

void add_lane_product(const StridedView& left, const ConstLanes& right, Lanes product) {
  product_into<Into::sum>(left, right, product);
}

}  // namespace quoka
