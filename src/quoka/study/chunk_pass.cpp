#include "quoka/study/chunk_pass.hpp"

#include <algorithm>
#include <numeric>

#include "quoka/attention/visibility.hpp"
#include "quoka/geometry/unit_rows.hpp"
#include "quoka/replay/chunk_plan.hpp"
#include "quoka/selection/keep_queries.hpp"
#include "quoka/selection/key_sequence.hpp"
#include "quoka/selection/score.hpp"

namespace quoka {
namespace {

/// Copies what the chunk's queries say to their places among all rows.
void store_queries(const ChunkContext& context, const KeptQueries& kept, GroupChunks& result) {
  const IndexRange rows = context.dense.rows;
  for (std::size_t head = 0; head < result.heads.size(); ++head) {
    HeadChunks& target = result.heads[head];
    const VectorD& similarity = context.queries[head].to_raw_mean.cosines;
    target.similarity.segment(rows.begin, rows.size()) = similarity;
    target.norms.segment(rows.begin, rows.size()) = context.queries[head].unit.norms;
    std::ranges::copy(similarity_classes(similarity), target.classes.begin() + rows.begin);
    for (const Index row : kept[head]) {
      target.kept[static_cast<std::size_t>(rows.begin + row)] = true;
    }
  }
}

/// Scores of the kept queries before any aggregation, on the keys at these positions.
void add_scores(const ChunkContext& context, const KeptQueries& kept,
                const std::vector<Index>& keys, GroupChunks& result) {
  if (keys.empty()) {
    return;
  }
  const MatrixD unit_keys = context.unit_keys(keys, Eigen::all).cast<double>();
  std::vector<MatrixD> scores;  // per head [n_keys, n_slots]
  for (std::size_t head = 0; head < kept.size(); ++head) {
    const MatrixD slots = context.queries[head].unit.rows(kept[head], Eigen::all).cast<double>();
    scores.emplace_back(unit_keys * slots.transpose());
    for (Index key = 0; key < unit_keys.rows(); ++key) {
      result.heads[head].over_queries.add(scores.back().row(key).transpose());
    }
  }
  VectorD of_heads(std::ssize(scores));
  for (Index key = 0; key < unit_keys.rows(); ++key) {
    for (Index slot = 0; slot < scores.front().cols(); ++slot) {
      for (Index head = 0; head < of_heads.size(); ++head) {
        of_heads[head] = scores[static_cast<std::size_t>(head)](key, slot);
      }
      result.over_heads.add(of_heads);
    }
  }
}

void mark_keys(const ChunkContext& context, const SelectorConfig& config, const ChunkFacts& facts,
               GroupChunks& result) {
  if (facts.state != ChunkState::active) {
    return;
  }
  const IndexRange candidates = context.candidates(config.candidates);
  result.n_competed.segment(candidates.begin, candidates.size()).array() += 1;
  const KeySequence sequence =
      key_sequence(context, config, score_candidates(context, config), facts.keys_kept());
  for (const std::int32_t key : sequence.keys) {
    result.n_kept[key] += 1;
  }
}

std::vector<Index> within(const std::vector<Index>& positions, IndexRange range) {
  return {std::ranges::lower_bound(positions, range.begin),
          std::ranges::lower_bound(positions, range.end)};
}

}  // namespace

std::vector<Index> similarity_classes(const VectorD& similarity) {
  std::vector<Index> order(static_cast<std::size_t>(similarity.size()));
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(order, {}, [&](Index row) { return similarity[row]; });
  std::vector<Index> classes(order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    classes[static_cast<std::size_t>(order[rank])] =
        n_similarity_classes * static_cast<Index>(rank) / similarity.size();
  }
  return classes;
}

GroupChunks measure_chunks(const GroupView& group, const AttentionRules& rules,
                           const StudySettings& settings, const std::vector<Index>& key_samples) {
  const Index n_tokens = group.q.front().rows();
  const Index n_keys = group.k.rows();
  const auto n_rows = static_cast<std::size_t>(n_tokens);
  const SelectorConfig config = marked_selection(settings, n_tokens);
  const UnitRows keys = unit_rows(group.k);
  GroupChunks result{.key_norms = keys.norms,
                     .n_competed = VectorD::Zero(n_keys),
                     .n_kept = VectorD::Zero(n_keys)};
  result.heads.resize(group.q.size());
  for (HeadChunks& head : result.heads) {
    head.similarity.resize(n_tokens);
    head.norms.resize(n_tokens);
    head.classes.resize(n_rows);
    head.kept.resize(n_rows, false);
  }
  for (const IndexRange rows : chunk_rows(n_tokens, config.chunk_size, config.chunk_offset)) {
    const IndexRange visible{visible_keys(rules, rules.q_offset + rows.begin).begin,
                             rules.q_offset + rows.end};
    DenseChunk no_attention;  // cosines need none
    no_attention.rows = rows;
    no_attention.keys = visible;
    const ChunkContext context{.group = group,
                               .unit_keys = keys.rows,
                               .dense = no_attention,
                               .queries = measure_queries(group, rows),
                               .rules = rules};
    const KeptQueries kept = keep_queries(context, config);
    store_queries(context, kept, result);
    add_scores(context, kept, within(key_samples, context.candidates(config.candidates)), result);
    mark_keys(context, config, chunk_facts(rules, rows, config, 0), result);
  }
  return result;
}

}  // namespace quoka
