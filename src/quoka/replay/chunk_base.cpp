#include "quoka/replay/chunk_base.hpp"

#include <algorithm>

#include "quoka/attention/visibility.hpp"
#include "quoka/core/lane_product.hpp"

namespace quoka {
namespace {

/// p per lane, summed over a range of keys.
LaneArrayD mass_of(const DenseChunk& dense, IndexRange keys) {
  LaneSums sums(dense.probs.cols());
  for (Index key = keys.begin; key < keys.end; ++key) {
    sums.add(&dense.probs(key - dense.keys.begin, 0));
  }
  return sums.total();
}

}  // namespace

ChunkBase chunk_base(ChunkContext context, const AttentionRules& rules, Index sink_size,
                     const std::vector<NeedleGroup>& needle_groups) {
  const DenseChunk& dense = context.dense;
  const IndexRange history = context.candidates(Candidates::history);
  const IndexRange own{history.end, dense.keys.end};
  const Index sinks_end = std::clamp(sink_size, dense.keys.begin, dense.keys.end);
  const Index history_sinks_end = std::min(sinks_end, history.end);
  const LaneArrayD history_sinks = mass_of(dense, {history.begin, history_sinks_end});

  ChunkBase base{.context = std::move(context), .sink_size = sink_size};
  base.history_no_sink_mass = mass_of(dense, {history_sinks_end, history.end});
  base.history_mass = base.history_no_sink_mass + history_sinks;
  base.sink_mass = history_sinks + mass_of(dense, {history_sinks_end, sinks_end});
  base.own_mass = mass_of(dense, own);
  base.visible_mass = base.history_mass + base.own_mass;

  base.out = Matrix::Zero(dense.out.cols(), dense.probs.cols());
  base.out.leftCols(dense.n_lanes()) = dense.out.transpose();
  base.own_numerator = Matrix(base.out.rows(), base.out.cols());
  lane_product(turned(row_view(base.context.group.v, own)), dense.probs.bottomRows(own.size()),
               lanes(base.own_numerator));

  for (Index key = dense.keys.begin; key < dense.keys.end; ++key) {
    const Index n_rows = rows_that_see(rules, dense.rows, key).size();
    base.pairs.push_back(static_cast<std::int32_t>(n_rows));
    (key < history.end ? base.history_pairs : base.own_pairs) += n_rows;
  }
  for (Index i = 0; i < dense.rows.size(); ++i) {
    base.visible.push_back(visible_keys(rules, rules.q_offset + dense.rows.begin + i));
  }
  base.needles = chunk_needles(rules, dense.rows, needle_groups);
  return base;
}

}  // namespace quoka
