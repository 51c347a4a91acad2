#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "quoka/core/matrix.hpp"

namespace quoka::test {

/// Result of a comparison; empty message = equal enough. Use: INFO(report.message);
/// CHECK(report.ok()).
struct NearReport {
  std::string message;
  [[nodiscard]] bool ok() const { return message.empty(); }
};

/// Compares element by element: |actual - expected| <= absolute + relative * |expected|; NaN equals
/// NaN. Reports the worst element with its place.
template <typename Actual, typename Expected>
NearReport near(const Actual& actual, const Expected& expected, double relative, double absolute) {
  if (actual.rows() != expected.rows() || actual.cols() != expected.cols()) {
    return {fmt::format("shape {} x {} differs from expected {} x {}", actual.rows(), actual.cols(),
                        expected.rows(), expected.cols())};
  }
  double worst = 0;
  std::string message;
  for (Index i = 0; i < actual.rows(); ++i) {
    for (Index j = 0; j < actual.cols(); ++j) {
      const double a = static_cast<double>(actual(i, j));
      const double e = static_cast<double>(expected(i, j));
      if (std::isnan(a) && std::isnan(e)) {
        continue;
      }
      const double excess = std::abs(a - e) - absolute - relative * std::abs(e);
      if (!(excess <= 0) && (message.empty() || excess > worst)) {
        worst = excess;
        message = fmt::format("worst element ({}, {}): actual {}, expected {}, allowed {}", i, j, a,
                              e, absolute + relative * std::abs(e));
      }
    }
  }
  return {message};
}

}  // namespace quoka::test
