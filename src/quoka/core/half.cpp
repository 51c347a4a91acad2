#include "quoka/core/half.hpp"

#include <Eigen/Core>
#include <cmath>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

// Eigen's own 16-bit types do the conversions (hardware instructions where the CPU has them).
template <typename Half>
void widen(std::span<const std::uint16_t> bits, std::span<float> values) {
  QUOKA_ASSERT(bits.size() == values.size());
  static_assert(sizeof(Half) == sizeof(std::uint16_t));
  for (std::size_t i = 0; i < bits.size(); ++i) {
    values[i] = static_cast<float>(Eigen::numext::bit_cast<Half>(bits[i]));
  }
}

template <typename Half>
void narrow(std::span<const float> values, std::span<std::uint16_t> bits) {
  QUOKA_ASSERT(bits.size() == values.size());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = Eigen::numext::bit_cast<std::uint16_t>(static_cast<Half>(values[i]));
  }
}

}  // namespace

void widen_float16(std::span<const std::uint16_t> bits, std::span<float> values) {
  widen<Eigen::half>(bits, values);
}

void widen_bfloat16(std::span<const std::uint16_t> bits, std::span<float> values) {
  widen<Eigen::bfloat16>(bits, values);
}

void narrow_float16(std::span<const float> values, std::span<std::uint16_t> bits) {
  narrow<Eigen::half>(values, bits);
}

void narrow_bfloat16(std::span<const float> values, std::span<std::uint16_t> bits) {
  narrow<Eigen::bfloat16>(values, bits);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (std::isnan(values[i])) {  // Eigen makes every NaN the same one
      const auto pattern = Eigen::numext::bit_cast<std::uint32_t>(values[i]);
      const auto kept = static_cast<std::uint16_t>(pattern >> 16);
      constexpr std::uint16_t mantissa = 0x7f;
      constexpr std::uint16_t quiet = 0x40;
      bits[i] = (kept & mantissa) != 0 ? kept : static_cast<std::uint16_t>(kept | quiet);
    }
  }
}

}  // namespace quoka
