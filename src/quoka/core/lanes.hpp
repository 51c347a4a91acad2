#pragma once

/// A *lane* is one row of one query head; the lanes of a group lie side by side, so that one
/// operation serves all of them: lane head * n_rows + i is row i of query head `head`. Blocks with
/// one column per lane are padded to whole vectors, so that every element goes through the same
/// instructions wherever it lies.

#include "quoka/core/matrix.hpp"

namespace quoka {

constexpr Index lane_width = 16;
/// One vector of lanes.
using Lane = Eigen::Array<float, lane_width, 1>;
/// One value per lane.
using LaneArray = Eigen::ArrayXf;
using LaneArrayD = Eigen::ArrayXd;

constexpr Index padded_lanes(Index n) { return (n + lane_width - 1) / lane_width * lane_width; }

/// Rows of lanes that are summed in float32; those sums go on in float64.
constexpr Index rows_in_float32 = 8;

/// Sums rows of lanes.
class LaneSums {
 public:
  explicit LaneSums(Index n_lanes) : short_(n_lanes), total_(LaneArrayD::Zero(n_lanes)) {}

  void add(const float* row) {
    const bool is_first = n_short_ == 0;
    for (Index l = 0; l < short_.size(); l += lane_width) {
      Eigen::Map<Lane> sum(short_.data() + l);
      const Eigen::Map<const Lane> added(row + l);
      sum = is_first ? Lane(added) : Lane(sum + added);
    }
    if (++n_short_ == rows_in_float32) {
      total_ += short_.cast<double>();
      n_short_ = 0;
    }
  }

  /// Sum of all rows so far: [lanes].
  [[nodiscard]] LaneArrayD total() const {
    return n_short_ == 0 ? total_ : LaneArrayD(total_ + short_.cast<double>());
  }

 private:
  LaneArray short_;  ///< of n_short_ rows
  LaneArrayD total_;
  Index n_short_ = 0;
};

}  // namespace quoka
