#include "quoka/capture/detail/trial.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quoka/attention/softmax.hpp"
#include "quoka/attention/visibility.hpp"
#include "quoka/capture/detail/search.hpp"
#include "quoka/core/error.hpp"

namespace quoka::capture_detail {
namespace {

constexpr Index n_sampled_rows = 16;

std::vector<Index> sampled_rows(Index n_tokens, Index worst_row) {
  std::vector<Index> rows = {worst_row};
  const Index n = std::min(n_tokens, n_sampled_rows);
  for (Index i = 0; i < n; ++i) {
    rows.push_back((2 * i + 1) * n_tokens / (2 * n));
  }
  std::ranges::sort(rows);
  rows.erase(std::ranges::unique(rows).begin(), rows.end());
  return rows;
}

// One row: products q.k with every key, turned into the attention over its visible keys.
struct RowResult {
  Eigen::RowVectorXf out;
  float lse = 0;
};

RowResult attend(const AttentionRules& rules, Index q_head, Index row,
                 const Eigen::RowVectorXf& products, const Matrix& v) {
  const Index query_pos = rules.q_offset + row;
  const IndexRange visible = visible_keys(rules, query_pos);
  const LogitRule rule = logit_rule(rules, q_head);
  Eigen::RowVectorXf probs = products.segment(visible.begin, visible.size());
  to_logits(rule, query_pos, visible.begin, probs);
  const SoftmaxTail tail = softmax_row(rule, probs);
  return {probs * v.middleRows(visible.begin, visible.size()), tail.lse};
}

// The factor on the row of q with which its output is nearest to the stored one.
RowResult attend_rescaled(const AttentionRules& rules, const HeadSample& head, Index i,
                          const Eigen::RowVectorXf& products, const Matrix& v) {
  const auto replay = [&](double factor) {
    return attend(rules, head.q_head, head.rows[static_cast<std::size_t>(i)],
                  products * static_cast<float>(factor), v);
  };
  const double norm = std::max(static_cast<double>(head.out.row(i).norm()), 1e-30);
  const auto error = [&](double factor) {
    const RowResult row = replay(factor);
    const double out = static_cast<double>((row.out - head.out.row(i)).norm()) / norm;
    // Where a row attends one key whatever the factor is, only lse tells it.
    return head.lse.size() == 0
               ? out
               : out + std::abs(static_cast<double>(row.lse) - static_cast<double>(head.lse[i]));
  };
  constexpr double largest_factor = 256;
  return replay(best_positive(1 / largest_factor, largest_factor, error));
}

double head_misfit(const HeadSample& head, const TrialRows& rows) {
  double worst = 0;
  if (head.out.size() > 0) {
    const double norm = head.out.cast<double>().norm();
    worst = (rows.out.cast<double>() - head.out.cast<double>()).norm() / std::max(norm, 1e-30);
  }
  if (head.lse.size() > 0) {
    const double n = std::sqrt(static_cast<double>(head.lse.size()));
    worst = std::max(worst, (rows.lse.cast<double>() - head.lse.cast<double>()).norm() / n);
  }
  return std::isfinite(worst) ? worst : std::numeric_limits<double>::infinity();
}

}  // namespace

LayerSample read_sample(const CaptureReader& reader, const CaptureLayer& layer,
                        const std::vector<Index>& worst_rows) {
  LayerSample sample;
  sample.layer = layer;
  sample.positions = reader.tokens().positions;
  for (Index head = 0; head < layer.shape.n_kv_heads; ++head) {
    sample.k.push_back(reader.read_head_checked(layer.layer_idx, Tensor::k, head));
    sample.v.push_back(reader.read_head_checked(layer.layer_idx, Tensor::v, head));
  }
  const Precision precision = precision_of(layer, reader.info().compute_dtype);
  for (Index q_head = 0; q_head < layer.shape.n_q_heads; ++q_head) {
    HeadSample head;
    head.q_head = q_head;
    head.rows = sampled_rows(layer.shape.n_tokens, worst_rows[static_cast<std::size_t>(q_head)]);
    const auto n = std::ssize(head.rows);
    const Matrix q =
        reader.read_rows(layer.layer_idx, Tensor::q, q_head, {0, layer.shape.n_tokens});
    head.q = q(head.rows, Eigen::all);
    head.out.resize(layer.has_out ? n : 0, layer.shape.v_head_dim);
    head.lse.resize(layer.has_lse ? n : 0);
    for (Index i = 0; i < n; ++i) {
      const Index row = head.rows[static_cast<std::size_t>(i)];
      head.positions.push_back(
          sample.positions[static_cast<std::size_t>(layer.rules.q_offset + row)]);
      if (layer.has_out) {
        head.out.row(i) = reader.read_rows(layer.layer_idx, Tensor::out, q_head, {row, row + 1});
      }
      if (layer.has_lse) {
        head.lse[i] = reader.read_lse(layer.layer_idx, q_head, {row, row + 1})[0];
      }
    }
    const Matrix& k = sample.k[static_cast<std::size_t>(q_head / layer.shape.group_size())];
    const double sensitivity =
        logit_sensitivity(layer.rules.scale, mean_squares(q), mean_squares(k));
    sample.tolerance = std::max(sample.tolerance, loose_tolerance(precision, sensitivity));
    sample.heads.push_back(std::move(head));
  }
  return sample;
}

Trial stored_trial(const CaptureLayer& layer) {
  Trial trial;
  trial.rules = layer.rules;
  for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
    trial.kv_heads.push_back(head / layer.shape.group_size());
  }
  return trial;
}

TrialRows replay_rows(const LayerSample& sample, const Trial& trial, const HeadSample& head) {
  const auto kv_head =
      static_cast<std::size_t>(trial.kv_heads[static_cast<std::size_t>(head.q_head)]);
  const Matrix& v = trial.swaps_k_and_v ? sample.k[kv_head] : sample.v[kv_head];
  const Matrix& stored_k = trial.swaps_k_and_v ? sample.v[kv_head] : sample.k[kv_head];
  Matrix q = head.q;
  if (trial.rotate_q) {
    rotate(*trial.rotate_q, head.positions, q);
  }
  Matrix products;
  if (trial.rotate_k) {
    Matrix k = stored_k;
    rotate(*trial.rotate_k, sample.positions, k);
    products.noalias() = q * k.transpose();
  } else {
    products.noalias() = q * stored_k.transpose();
  }
  TrialRows result{Matrix(q.rows(), v.cols()), Vector(q.rows())};
  for (Index i = 0; i < q.rows(); ++i) {
    const RowResult row = trial.rescales_rows
                              ? attend_rescaled(trial.rules, head, i, products.row(i), v)
                              : attend(trial.rules, head.q_head,
                                       head.rows[static_cast<std::size_t>(i)], products.row(i), v);
    result.out.row(i) = row.out;
    result.lse[i] = row.lse;
  }
  return result;
}

double misfit(const LayerSample& sample, const Trial& trial, const std::vector<Index>& q_heads) {
  double worst = 0;
  for (const Index q_head : q_heads) {
    const HeadSample& head = sample.heads[static_cast<std::size_t>(q_head)];
    try {
      worst = std::max(worst, head_misfit(head, replay_rows(sample, trial, head)));
    } catch (const FormatError&) {  // the trial's logits overflow: it does not fit
      return std::numeric_limits<double>::infinity();
    }
  }
  return worst;
}

}  // namespace quoka::capture_detail
