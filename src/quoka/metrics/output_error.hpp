#pragma once

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Denominators below this leave a row out of a metric.
constexpr double smallest_denominator = 1e-30;

/// Distance of one sparse output row from the dense one. NaN where undefined.
struct OutputError {
  float rel_l2 = 0;   ///< norm(sparse - dense) / norm(dense); lower is better
  float cosine = 0;   ///< in [-1, 1]; higher is better; does not see the length
  float max_abs = 0;  ///< largest |sparse - dense| over channels; lower is better
};

/// Compares two rows of channels. Sums over channels in float32 lanes, in float64 where a square
/// could leave its range. Shapes: sparse and dense [n_channels].
OutputError output_error(const float* sparse, const float* dense, Index n_channels);

/// part / whole as float32, or NaN if whole is below smallest_denominator.
float ratio_or_nan(double part, double whole);

}  // namespace quoka
