#include "quoka/geometry/theorem.hpp"

#include <algorithm>
#include <cmath>

namespace quoka {

bool theorem_applies(const TheoremAngles& angles) {
  return angles.mean_key < 0 && angles.query_key > 0;
}

double paper_bound(const TheoremAngles& angles) {
  const double difference = angles.mean_key - angles.query_key;
  return 1 - difference * difference / 2;
}

double spherical_bound(const TheoremAngles& angles) {
  const double alpha = angles.mean_key;
  const double beta = angles.query_key;
  const double sines = std::max(0.0, 1 - alpha * alpha) * std::max(0.0, 1 - beta * beta);
  return alpha * beta + std::sqrt(sines);
}

}  // namespace quoka
