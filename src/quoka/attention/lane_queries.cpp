#include "quoka/attention/lane_queries.hpp"

namespace quoka {

LaneQueries::LaneQueries(const GroupView& group, IndexRange rows) : head_dim_(group.k.cols()) {
  const Index n_lanes = group.group_size() * rows.size();
  panels_ = Matrix::Zero((n_lanes + lane_panel - 1) / lane_panel * head_dim_, lane_panel);
  for (Index lane = 0; lane < n_lanes; ++lane) {
    const ConstMatrixView& q = group.q[static_cast<std::size_t>(lane / rows.size())];
    panels_.col(lane % lane_panel).segment(lane / lane_panel * head_dim_, head_dim_) =
        q.row(rows.begin + lane % rows.size()).transpose();
  }
}

}  // namespace quoka
