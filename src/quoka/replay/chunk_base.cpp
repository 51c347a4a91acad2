#include "quoka/replay/chunk_base.hpp"

#include <algorithm>

#include "quoka/attention/visibility.hpp"

namespace quoka {

Index ChunkBase::rows_that_see(Index key_pos) const {
  // The lowest visible position never falls from row to row, so those rows are consecutive.
  const Index first_row = std::max<Index>(0, key_pos - context.chunk_begin());
  const auto end = std::ranges::upper_bound(visible, key_pos, {}, &IndexRange::begin);
  return std::max<Index>(0, end - visible.begin() - first_row);
}

ChunkBase chunk_base(ChunkContext context, const AttentionRules& rules, Index sink_size,
                     const std::vector<NeedleGroup>& needle_groups) {
  const DenseChunk& dense = context.dense;
  const Index n = dense.probs.rows();
  const Index n_history = context.candidates(Candidates::history).size();
  const Index n_sinks = std::clamp(sink_size - dense.keys.begin, Index{0}, dense.keys.size());
  ChunkBase base{.context = std::move(context),
                 .sink_size = sink_size,
                 .visible_mass = VectorD(n),
                 .history_mass = VectorD(n),
                 .history_no_sink_mass = VectorD(n),
                 .sink_mass = VectorD(n),
                 .own_mass = VectorD(n),
                 .own_numerator = {},
                 .visible = {},
                 .needles = chunk_needles(rules, dense.rows, needle_groups)};
  for (Index row = 0; row < n; ++row) {
    const auto p = dense.probs.row(row).cast<double>();
    const Index n_history_sinks = std::min(n_sinks, n_history);
    base.history_no_sink_mass[row] = p.segment(n_history_sinks, n_history - n_history_sinks).sum();
    base.history_mass[row] = base.history_no_sink_mass[row] + p.head(n_history_sinks).sum();
    base.sink_mass[row] = p.head(n_sinks).sum();
    base.own_mass[row] = p.tail(p.size() - n_history).sum();
    base.visible_mass[row] = base.history_mass[row] + base.own_mass[row];
  }
  const IndexRange own{base.context.chunk_begin(), dense.keys.end};
  base.own_numerator.noalias() =
      dense.probs.rightCols(own.size()) * row_view(base.context.group.v, own);
  for (Index i = 0; i < dense.rows.size(); ++i) {
    base.visible.push_back(visible_keys(rules, rules.q_offset + dense.rows.begin + i));
  }
  return base;
}

VectorD pooled_probs(const DenseChunk& dense) {
  Eigen::RowVectorXd sum = Eigen::RowVectorXd::Zero(dense.probs.cols());
  for (Index row = 0; row < dense.probs.rows(); ++row) {
    sum += dense.probs.row(row).cast<double>();
  }
  return sum.transpose();
}

}  // namespace quoka
