#include "quoka/replay/measure_rows.hpp"

#include <limits>

#include "quoka/attention/sparse.hpp"
#include "quoka/metrics/columns.hpp"
#include "quoka/metrics/output_error.hpp"

namespace quoka {
namespace {

constexpr float undefined = std::numeric_limits<float>::quiet_NaN();

/// Below this kept probability a row is attended again from its own logits: the dense probabilities
/// of keys far below the row's best lose digits when they leave the range of float32 (smallest
/// 1e-38).
constexpr double smallest_reused_mass = 1e-20;

/// Probabilities per lane that are left of the dense ones, the sink logit's included in `softmax`.
struct KeptMass {
  LaneArrayD history_no_sink;
  LaneArrayD history;
  LaneArrayD attended;
  LaneArrayD softmax;  ///< the denominator of the sparse softmax
};

LaneArrayD sink_probs(const DenseChunk& dense) {
  LaneArrayD probs = LaneArrayD::Zero(dense.probs.cols());
  probs.head(dense.n_lanes()) = dense.sink_probs.cast<double>().array();
  return probs;
}

KeptMass kept_mass(const KeyWalk& walk, const PrefixSums& sums, const LaneArrayD& sink) {
  KeptMass mass;
  mass.history_no_sink = sums.history_no_sink.total();
  mass.history = mass.history_no_sink + sums.sinks.total();
  mass.attended = mass.history + (walk.with_own_keys ? walk.base.own_mass : sums.own.total());
  mass.softmax = mass.attended + sink;
  return mass;
}

void set_ratios(const LaneArrayD& parts, const LaneArrayD& wholes, float* ratios) {
  for (Index lane = 0; lane < parts.size(); ++lane) {
    const auto ratio = static_cast<float>(parts[lane] / wholes[lane]);
    ratios[lane] = wholes[lane] < smallest_denominator ? undefined : ratio;
  }
}

/// Errors of a lane from its own logits.
OutputError recomputed_error(const KeyWalk& walk, Index n_keys, Index lane) {
  const DenseChunk& dense = walk.base.context.dense;
  const Index head = lane / dense.rows.size();
  const Index token = lane % dense.rows.size();
  const Eigen::RowVectorXf sparse =
      sparse_row(walk.base.context.group, walk.rules, head, dense.rows.begin + token,
                 walk.attended_keys(n_keys, token));
  return output_error(sparse.transpose(), walk.base.out.col(lane));
}

}  // namespace

Matrix measure_rows(const KeyWalk& walk, const PrefixSums& sums, Index n_keys) {
  const ChunkBase& base = walk.base;
  const DenseChunk& dense = base.context.dense;
  const LaneArrayD sink = sink_probs(dense);
  const KeptMass mass = kept_mass(walk, sums, sink);
  Matrix metrics(n_row_metrics, dense.probs.cols());
  const auto row = [&metrics](RowMetric metric) { return metrics.row(static_cast<Index>(metric)); };

  set_ratios(mass.attended, base.visible_mass, row(RowMetric::mass_recall).data());
  set_ratios(mass.history, base.history_mass, row(RowMetric::mass_recall_history).data());
  set_ratios(mass.history_no_sink, base.history_no_sink_mass,
             row(RowMetric::mass_recall_no_sink).data());
  const LaneArrayD kept_share = mass.softmax / (base.visible_mass + sink);
  row(RowMetric::kl) = -kept_share.log().cast<float>().transpose();

  const LaneArray factors = mass.softmax.inverse().cast<float>();
  const OutputErrors errors = output_errors(sums.numerators, factors, base.out, dense.n_lanes());
  row(RowMetric::out_rel_l2) = errors.rel_l2.transpose();
  row(RowMetric::out_cos) = errors.cosine.transpose();
  row(RowMetric::out_max_abs) = errors.max_abs.transpose();

  for (Index lane = 0; lane < dense.n_lanes(); ++lane) {
    if (walk.is_empty_row(n_keys, lane % dense.rows.size())) {
      metrics.col(lane).setConstant(undefined);
      continue;
    }
    if (mass.softmax[lane] < smallest_reused_mass) {
      const OutputError error = recomputed_error(walk, n_keys, lane);
      row(RowMetric::out_rel_l2)[lane] = error.rel_l2;
      row(RowMetric::out_cos)[lane] = error.cosine;
      row(RowMetric::out_max_abs)[lane] = error.max_abs;
    }
    if (kept_share[lane] < smallest_denominator) {
      row(RowMetric::kl)[lane] = undefined;
    }
  }
  return metrics;
}

}  // namespace quoka
