#pragma once

#include "quoka/attention/group_view.hpp"
#include "quoka/core/lane_product.hpp"

namespace quoka {

/// The queries of a block of rows, one lane per row and query head of the group, channel by channel
/// in panels of lane_panel lanes: the right factor of the products with keys. Lanes beyond the last
/// are zero.
class LaneQueries {
 public:
  /// Shapes: rows within [0, n_tokens).
  LaneQueries(const GroupView& group, IndexRange rows);

  /// The panel's queries, [k_head_dim, n_lanes]. Shapes: first_lane a multiple of lane_panel,
  /// n_lanes at most lane_panel.
  [[nodiscard]] LanesView panel(Index first_lane, Index n_lanes) const {
    return {panels_.data() + first_lane * head_dim_, head_dim_, n_lanes,
            Eigen::OuterStride<>(lane_panel)};
  }

 private:
  Matrix panels_;  ///< [panels * k_head_dim, lane_panel]
  Index head_dim_;
};

}  // namespace quoka
