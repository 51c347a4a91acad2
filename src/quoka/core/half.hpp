#pragma once

#include <cstdint>
#include <span>

namespace quoka {

/// Widens IEEE float16 bit patterns to float32, exactly (NaN, infinity, -0, subnormals included).
void widen_float16(std::span<const std::uint16_t> bits, std::span<float> values);

/// Widens bfloat16 bit patterns to float32, exactly.
void widen_bfloat16(std::span<const std::uint16_t> bits, std::span<float> values);

/// Rounds float32 to float16 bit patterns, to nearest even; values beyond 65504 become infinity.
void narrow_float16(std::span<const float> values, std::span<std::uint16_t> bits);

/// Rounds float32 to bfloat16 bit patterns, to nearest even; a NaN keeps its upper bits, so that
/// widening and narrowing give every pattern back.
void narrow_bfloat16(std::span<const float> values, std::span<std::uint16_t> bits);

}  // namespace quoka
