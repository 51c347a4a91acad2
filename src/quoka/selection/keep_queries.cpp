#include "quoka/selection/keep_queries.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "quoka/core/random.hpp"
#include "quoka/selection/parameters.hpp"

namespace quoka {
namespace {

const MeanSimilarity& mean_similarity(const HeadQueries& head, QueryMean mean) {
  return mean == QueryMean::raw ? head.to_raw_mean : head.to_normalized_mean;
}

/// The quantity that orders the rows of one head; smaller is kept first.
VectorD row_costs(const ChunkContext& context, const SelectorConfig& config, Index head) {
  const HeadQueries& queries = context.queries[static_cast<std::size_t>(head)];
  switch (config.query_rule) {
    case QueryRule::highest_cosine:
      return -mean_similarity(queries, config.query_mean).cosines;
    case QueryRule::largest_norm:
      return -queries.unit.norms;
    default:
      return mean_similarity(queries, config.query_mean).cosines;
  }
}

/// The first n rows by (cost, position).
std::vector<Index> cheapest_rows(const VectorD& costs, Index n) {
  std::vector<Index> rows(static_cast<std::size_t>(costs.size()));
  std::iota(rows.begin(), rows.end(), Index{0});
  std::ranges::stable_sort(rows, {}, [&costs](Index row) { return costs[row]; });
  rows.resize(static_cast<std::size_t>(n));
  return rows;
}

/// Rows in the order of their random bits; the bits are drawn once per head (or once per group).
std::vector<Index> random_rows(const ChunkContext& context, std::uint64_t seed, Index stream_head,
                               Index n) {
  std::vector<std::pair<std::uint64_t, Index>> rows;
  for (Index i = 0; i < context.n_rows(); ++i) {
    const Index position = context.chunk_begin() + i;
    rows.emplace_back(
        random_bits({seed, context.layer_idx, context.chunk_begin(), stream_head, position}), i);
  }
  std::ranges::sort(rows);
  std::vector<Index> kept;
  for (Index j = 0; j < n; ++j) {
    kept.push_back(rows[static_cast<std::size_t>(j)].second);
  }
  return kept;
}

/// Cosine of every row with one row, averaged over the heads.
VectorD mean_cosines_with(const ChunkContext& context, const std::vector<Index>& heads, Index row) {
  VectorD sum = VectorD::Zero(context.n_rows());
  for (const Index head : heads) {
    const auto unit = context.queries[static_cast<std::size_t>(head)].unit.rows.cast<double>();
    sum += unit * unit.row(row).transpose();
  }
  return sum / static_cast<double>(heads.size());
}

/// Starts at the cheapest row, then repeatedly takes the row whose largest cosine to those kept is
/// smallest.
std::vector<Index> farthest_rows(const ChunkContext& context, const std::vector<Index>& heads,
                                 const VectorD& start_costs, Index n) {
  constexpr double taken = std::numeric_limits<double>::infinity();
  std::vector<Index> kept{cheapest_rows(start_costs, 1)};
  VectorD nearest = VectorD::Constant(context.n_rows(), -taken);
  nearest[kept.front()] = taken;
  while (static_cast<Index>(kept.size()) < n) {
    nearest = nearest.cwiseMax(mean_cosines_with(context, heads, kept.back()));
    const Index next = std::min_element(nearest.begin(), nearest.end()) - nearest.begin();
    kept.push_back(next);
    nearest[next] = taken;
  }
  return kept;
}

/// Rows kept by heads that decide together: one head, or the whole group.
std::vector<Index> keep_rows(const ChunkContext& context, const SelectorConfig& config,
                             const std::vector<Index>& heads, Index stream_head) {
  const Index n_rows = context.n_rows();
  const Index n = config.n_sel_queries;
  std::vector<Index> kept(static_cast<std::size_t>(n));
  switch (config.query_rule) {
    case QueryRule::first:
      std::iota(kept.begin(), kept.end(), Index{0});
      return kept;
    case QueryRule::last:
      std::iota(kept.begin(), kept.end(), n_rows - n);
      return kept;
    case QueryRule::stride:
      return evenly_spaced_rows(n_rows, n);
    case QueryRule::random:
      return random_rows(context, config.seed, stream_head, n);
    default:
      break;
  }
  VectorD costs = VectorD::Zero(n_rows);
  for (const Index head : heads) {
    costs += row_costs(context, config, head);
  }
  costs /= static_cast<double>(heads.size());
  return config.query_rule == QueryRule::farthest_point ? farthest_rows(context, heads, costs, n)
                                                        : cheapest_rows(costs, n);
}

bool keeps_every_row(const ChunkContext& context, const SelectorConfig& config) {
  return config.query_rule == QueryRule::all || context.n_rows() <= config.n_sel_queries;
}

}  // namespace

std::vector<Index> evenly_spaced_rows(Index n_rows, Index n) {
  std::vector<Index> rows;
  for (Index i = 0; i < n; ++i) {
    rows.push_back((2 * i + 1) * n_rows / (2 * n));
  }
  return rows;
}

KeptQueries keep_queries(const ChunkContext& context, const SelectorConfig& config) {
  const Index group_size = context.group.group_size();
  const auto n_heads = static_cast<std::size_t>(group_size);
  if (keeps_every_row(context, config)) {
    std::vector<Index> every_row(static_cast<std::size_t>(context.n_rows()));
    std::iota(every_row.begin(), every_row.end(), Index{0});
    return KeptQueries(n_heads, every_row);
  }
  KeptQueries kept;
  if (config.query_scope == QueryScope::per_group) {
    std::vector<Index> all_heads(n_heads);
    std::iota(all_heads.begin(), all_heads.end(), Index{0});
    kept.assign(n_heads, keep_rows(context, config, all_heads, context.group.kv_head));
  } else {
    for (Index head = 0; head < group_size; ++head) {
      kept.push_back(keep_rows(context, config, {head}, context.group.q_head(head)));
    }
  }
  if (config.pairing == Pairing::position) {
    for (std::vector<Index>& rows : kept) {
      std::ranges::sort(rows);
    }
  }
  return kept;
}

bool uses_zero_mean(const ChunkContext& context, const SelectorConfig& config, Index head) {
  return uses_mean_query(config) && !keeps_every_row(context, config) &&
         mean_similarity(context.queries[static_cast<std::size_t>(head)], config.query_mean)
             .zero_mean;
}

}  // namespace quoka
