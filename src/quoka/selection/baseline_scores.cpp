#include "quoka/selection/baseline_scores.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "quoka/attention/key_products.hpp"
#include "quoka/attention/softmax.hpp"
#include "quoka/attention/visibility.hpp"
#include "quoka/selection/keep_queries.hpp"

namespace quoka {
namespace {

/// Dense probabilities of the given rows, summed over rows and heads.
VectorD summed_probs(const ChunkContext& context, const std::vector<Index>& rows,
                     IndexRange candidates) {
  VectorD sums = VectorD::Zero(candidates.size());
  for (Index i = 0; i < candidates.size(); ++i) {
    const auto probs = context.dense.probs.row(candidates.begin - context.dense.keys.begin + i);
    for (Index head = 0; head < context.group.group_size(); ++head) {
      for (const Index row : rows) {
        sums[i] += static_cast<double>(probs[context.dense.lane(head, row)]);
      }
    }
  }
  return sums;
}

/// Mean over `size` neighbours, zeros beyond the ends.
VectorD averaged_over_neighbours(const VectorD& scores, Index size) {
  VectorD result(scores.size());
  for (Index i = 0; i < scores.size(); ++i) {
    const Index begin = std::max<Index>(0, i - size / 2);
    const Index end = std::min(scores.size(), i + size / 2 + 1);
    result[i] = scores.segment(begin, end - begin).sum() / static_cast<double>(size);
  }
  return result;
}

/// The n channels of a head with the largest sum of |q| over the chunk, ties to the lower channel.
std::vector<Index> largest_channels(const ConstMatrixView& q, Index n) {
  const VectorD sums = q.cast<double>().cwiseAbs().colwise().sum();
  std::vector<Index> channels(static_cast<std::size_t>(q.cols()));
  std::iota(channels.begin(), channels.end(), Index{0});
  std::ranges::stable_sort(channels, std::ranges::greater{},
                           [&sums](Index channel) { return sums[channel]; });
  channels.resize(static_cast<std::size_t>(n));
  std::ranges::sort(channels);
  return channels;
}

Index channel_count(const ChunkContext& context, const SelectorConfig& config) {
  const Index head_dim = context.group.k.cols();
  return std::min(head_dim, config.n_channels.keys(head_dim));
}

/// Softmax of one row over the candidates it may see, added to the sum.
void add_row_probs(const ChunkContext& context, const LogitRule& rule, Index row,
                   IndexRange candidates, Eigen::Ref<Eigen::RowVectorXf> products, VectorD& sum) {
  const Index query_pos = context.chunk_begin() + row;
  const IndexRange seen = visible_keys(context.rules, query_pos);
  const IndexRange keys{std::max(seen.begin, candidates.begin), std::min(seen.end, candidates.end)};
  if (keys.size() == 0) {
    return;
  }
  auto segment = products.segment(keys.begin - candidates.begin, keys.size());
  to_logits(rule, query_pos, keys.begin, segment);
  to_probs(rule, segment);
  sum.segment(keys.begin - candidates.begin, keys.size()) += segment.transpose().cast<double>();
}

}  // namespace

VectorD score_keydiff(const ChunkContext& context, IndexRange candidates) {
  return -similarity_to_mean(row_view(context.group.k, candidates), MeanOf::unit_rows).cosines;
}

VectorD score_snapkv(const ChunkContext& context, const SelectorConfig& config,
                     IndexRange candidates) {
  std::vector<Index> rows;
  for (Index row = std::max<Index>(0, context.n_rows() - config.observation_window);
       row < context.n_rows(); ++row) {
    rows.push_back(row);
  }
  return averaged_over_neighbours(summed_probs(context, rows, candidates), config.pool_size);
}

VectorD score_sample_attention(const ChunkContext& context, const SelectorConfig& config,
                               IndexRange candidates) {
  const std::vector<Index> rows =
      evenly_spaced_rows(context.n_rows(), std::min(config.n_sel_queries, context.n_rows()));
  return summed_probs(context, rows, candidates);
}

VectorD score_sparq(const ChunkContext& context, const SelectorConfig& config,
                    IndexRange candidates) {
  VectorD sum = VectorD::Zero(candidates.size());
  for (Index head = 0; head < context.group.group_size(); ++head) {
    const ConstMatrixView q =
        row_view(context.group.q[static_cast<std::size_t>(head)], context.dense.rows);
    const std::vector<Index> channels = largest_channels(q, channel_count(context, config));
    const Matrix part = q(Eigen::all, channels);
    const Matrix keys = row_view(context.group.k, candidates)(Eigen::all, channels);
    Matrix products(part.rows(), keys.rows());
    key_products(part, view(keys), products);
    LogitRule rule = logit_rule(context.rules, context.group.q_head(head));
    rule.sink = -std::numeric_limits<double>::infinity();
    for (Index row = 0; row < products.rows(); ++row) {
      const double whole = q.row(row).cast<double>().lpNorm<1>();
      const double share = part.row(row).cast<double>().lpNorm<1>() / whole;
      LogitRule widened = rule;
      widened.scale = share > 0 ? rule.scale / std::sqrt(share) : rule.scale;
      add_row_probs(context, widened, row, candidates, products.row(row), sum);
    }
  }
  return sum;
}

VectorD score_loki(const ChunkContext& context, const SelectorConfig& config,
                   IndexRange candidates) {
  const MatrixD keys = row_view(context.group.k, candidates).cast<double>();
  const MatrixD centred = keys.rowwise() - keys.colwise().mean();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(centred.transpose() * centred);
  // Eigenvalues ascend: the first components are the last columns.
  const Eigen::MatrixXd basis = solver.eigenvectors().rightCols(channel_count(context, config));
  VectorD mean = VectorD::Zero(keys.cols());
  for (const ConstMatrixView& q : context.group.q) {
    mean += row_view(q, context.dense.rows).cast<double>().colwise().mean().transpose();
  }
  mean /= static_cast<double>(context.group.group_size());
  return keys * (basis * (basis.transpose() * mean));
}

}  // namespace quoka
