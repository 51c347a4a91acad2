#pragma once

#include "quoka/core/lanes.hpp"

namespace quoka {

/// Denominators below this leave a row out of a metric.
constexpr double smallest_denominator = 1e-30;

/// Distance of one sparse output row from the dense one. NaN where undefined.
struct OutputError {
  float rel_l2 = 0;   ///< norm(sparse - dense) / norm(dense); lower is better
  float cosine = 0;   ///< in [-1, 1]; higher is better; does not see the length
  float max_abs = 0;  ///< largest |sparse - dense| over channels; lower is better
};

/// Compares two rows of channels, in float64. Shapes: sparse and dense [v_head_dim].
OutputError output_error(const Eigen::Ref<const Vector>& sparse,
                         const Eigen::Ref<const Vector>& dense);

/// OutputError of many rows side by side: [lanes] each; lanes of padding hold nothing of use.
struct OutputErrors {
  LaneArray rel_l2;
  LaneArray cosine;
  LaneArray max_abs;
};

/// Compares all lanes at once: sums over channels in float32, in float64 for a lane where a square
/// could leave its range.
///
/// Shapes: numerators and dense [v_head_dim, padded lanes], factors [padded lanes]; sparse =
/// numerators * factors. Cost: O(v_head_dim * n_lanes).
OutputErrors output_errors(const Matrix& numerators, const LaneArray& factors, const Matrix& dense,
                           Index n_lanes);

/// part / whole as float32, or NaN if whole is below smallest_denominator.
float ratio_or_nan(double part, double whole);

}  // namespace quoka
