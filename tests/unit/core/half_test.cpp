#include "quoka/core/half.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"

namespace quoka {
namespace {

// The value of a 16-bit float from the definition of IEEE 754.
double value_of(std::uint16_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits >> 15) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  }
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

std::vector<std::uint16_t> all_patterns() {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint16_t>(i);
  }
  return bits;
}

bool same(float actual, double expected) {
  return std::isnan(expected) ? std::isnan(actual)
                              : static_cast<double>(actual) == expected &&
                                    std::signbit(actual) == std::signbit(expected);
}

std::uint16_t to_float16(float value) {
  std::uint16_t bits = 0;
  narrow_float16({&value, 1}, {&bits, 1});
  return bits;
}

std::uint16_t to_bfloat16(float value) {
  std::uint16_t bits = 0;
  narrow_bfloat16({&value, 1}, {&bits, 1});
  return bits;
}

}  // namespace

TEST_CASE("every float16 pattern widens to its exact value", "[core][half]") {
  const auto bits = all_patterns();
  std::vector<float> values(bits.size());
  widen_float16(bits, values);
  int n_wrong = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    n_wrong += same(values[i], value_of(bits[i], 5, 10)) ? 0 : 1;
  }
  CHECK(n_wrong == 0);
}

TEST_CASE("every bfloat16 pattern widens to its exact value", "[core][half]") {
  const auto bits = all_patterns();
  std::vector<float> values(bits.size());
  widen_bfloat16(bits, values);
  int n_wrong = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    n_wrong += same(values[i], value_of(bits[i], 8, 7)) ? 0 : 1;
  }
  CHECK(n_wrong == 0);
}

TEST_CASE("every 16-bit number survives widening and narrowing", "[core][half]") {
  const auto bits = all_patterns();
  std::vector<float> values(bits.size());
  std::vector<std::uint16_t> back(bits.size());
  int n_wrong = 0;
  widen_float16(bits, values);
  narrow_float16(values, back);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    n_wrong += back[i] == bits[i] || std::isnan(values[i]) ? 0 : 1;
  }
  widen_bfloat16(bits, values);
  narrow_bfloat16(values, back);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    n_wrong += back[i] == bits[i] || std::isnan(values[i]) ? 0 : 1;
  }
  CHECK(n_wrong == 0);
}

TEST_CASE("narrowing rounds to nearest and ties to even", "[core][half]") {
  // Around 1 the float16 numbers are 2^-10 apart: 1 = 0x3c00, next 0x3c01.
  CHECK(to_float16(1.0F + std::ldexp(1.0F, -11)) == 0x3c00);      // tie, even below
  CHECK(to_float16(1.0F + 3 * std::ldexp(1.0F, -11)) == 0x3c02);  // tie, even above
  CHECK(to_float16(1.0F + std::ldexp(1.0F, -11) + std::ldexp(1.0F, -20)) == 0x3c01);
  // bfloat16 numbers around 1 are 2^-7 apart: 1 = 0x3f80.
  CHECK(to_bfloat16(1.0F + std::ldexp(1.0F, -8)) == 0x3f80);
  CHECK(to_bfloat16(1.0F + 3 * std::ldexp(1.0F, -8)) == 0x3f82);
  CHECK(to_bfloat16(1.0F + std::ldexp(1.0F, -8) + std::ldexp(1.0F, -20)) == 0x3f81);
}

TEST_CASE("values at the edges of float16 narrow as IEEE 754 says", "[core][half]") {
  CHECK(to_float16(65504.0F) == 0x7bff);
  CHECK(to_float16(65519.0F) == 0x7bff);
  CHECK(to_float16(65520.0F) == 0x7c00);  // half way to 65536: infinity
  CHECK(to_float16(-1.0e30F) == 0xfc00);
  CHECK(to_float16(std::ldexp(1.0F, -24)) == 0x0001);  // smallest subnormal
  CHECK(to_float16(std::ldexp(1.0F, -25)) == 0x0000);  // tie to even
  CHECK(to_float16(-0.0F) == 0x8000);
  CHECK((to_float16(std::numeric_limits<float>::quiet_NaN()) & 0x7c00) == 0x7c00);
  CHECK((to_float16(std::numeric_limits<float>::quiet_NaN()) & 0x03ff) != 0);
  CHECK(to_bfloat16(1.0e30F) == 0x714a);  // 0x7149f2ca rounded up
  CHECK((to_bfloat16(std::numeric_limits<float>::quiet_NaN()) & 0x007f) != 0);
}

}  // namespace quoka
