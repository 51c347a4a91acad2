#include "quoka/core/float64_sums.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "support/tiny_layer.hpp"

using namespace quoka;

TEST_CASE("float64 sums keep what float32 would lose, for every length", "[core][float64_sums]") {
  const Index n = GENERATE(0, 1, 15, 16, 17, 100);
  test::NumberStream numbers(51);
  Matrix a = numbers.matrix(1, n + 2);
  const Matrix b = numbers.matrix(1, n + 2);
  a(0, 0) = 1e8F;  // its last digit in float32 is 8
  a(0, n + 1) = -1e8F;
  double sum = 0;
  double dot = 0;
  for (Index i = 0; i < n + 2; ++i) {
    sum += static_cast<double>(a(0, i));
    dot += static_cast<double>(a(0, i)) * static_cast<double>(b(0, i));
  }

  // 102 additions, each rounded to 2^-53 of 1e8.
  CHECK(std::abs(sum_float64(a.data(), n + 2) - sum) < 102 * 1e8 * 0x1p-53);
  CHECK(std::abs(dot_float64(a.data(), b.data(), n + 2) - dot) < 102 * 1e8 * 0x1p-53);
  CHECK(sum_float64(a.data(), 0) == 0);
}
