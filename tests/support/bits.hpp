#pragma once

#include <cstring>

#include "quoka/core/matrix.hpp"

namespace quoka::test {

/// True if both matrices hold the same bits (NaN equals the same NaN).
inline bool same_bits(const Matrix& a, const Matrix& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         (a.size() == 0 ||
          std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * sizeof(float)) == 0);
}

}  // namespace quoka::test
