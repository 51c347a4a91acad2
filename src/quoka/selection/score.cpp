#include "quoka/selection/score.hpp"

#include <algorithm>

#include "quoka/attention/key_products.hpp"
#include "quoka/core/error.hpp"
#include "quoka/selection/baseline_scores.hpp"
#include "quoka/selection/keep_queries.hpp"

namespace quoka {
namespace {

/// Keys scored at a time: their scores for all slots stay in the cache.
constexpr Index key_block = 2048;

/// The kept rows of one head, unit or raw, one per slot.
/// Source: QUOKA, Algorithm 1, line 6.
Matrix slot_rows(const ChunkContext& context, const SelectorConfig& config, Index head,
                 const std::vector<Index>& kept) {
  const auto h = static_cast<std::size_t>(head);
  const ConstMatrixView rows = config.score == Score::cosine
                                   ? view(context.queries[h].unit.rows)
                                   : row_view(context.group.q[h], context.dense.rows);
  return rows(kept, Eigen::all);
}

/// Scores of one head's slots, or of the group's averaged slots, aggregated over slots.
///
/// block_scores(keys) returns [slots, keys.size()] for a range of absolute key positions.
/// Source: QUOKA, Algorithm 1, line 10.
template <typename BlockScores>
Vector aggregate_slots(IndexRange candidates, QueryAggregation aggregation,
                       const BlockScores& block_scores) {
  Vector result(candidates.size());
  for (Index begin = candidates.begin; begin < candidates.end; begin += key_block) {
    const IndexRange keys{begin, std::min(begin + key_block, candidates.end)};
    const Matrix scores = block_scores(keys);
    Eigen::RowVectorXf total = scores.row(0);
    for (Index slot = 1; slot < scores.rows(); ++slot) {
      if (aggregation == QueryAggregation::max) {
        total = total.cwiseMax(scores.row(slot));
      } else {
        total += scores.row(slot);
      }
    }
    if (aggregation == QueryAggregation::mean) {
      total /= static_cast<float>(scores.rows());
    }
    result.segment(begin - candidates.begin, keys.size()) = total.transpose();
  }
  return result;
}

/// Products of slots with keys, for cosine and dot.
auto slot_products(const ChunkContext& context, const SelectorConfig& config, const Matrix& slots) {
  const ConstMatrixView keys =
      config.score == Score::cosine ? view(context.unit_keys) : context.group.k;
  return [keys, &slots](IndexRange range) -> Matrix {
    Matrix products(slots.rows(), range.size());
    key_products(slots, row_view(keys, range), products);
    require<FormatError>(
        products.allFinite(),
        "a product of a query with keys {} to {} overflows float32 (its score would "
        "be infinite or NaN)",
        range.begin, range.end - 1);
    return products;
  };
}

/// Exact attention probabilities of the kept rows of one head.
Matrix slot_probs(const ChunkContext& context, Index head, const std::vector<Index>& kept,
                  IndexRange keys) {
  Matrix probs(static_cast<Index>(kept.size()), keys.size());
  for (Index key = 0; key < keys.size(); ++key) {
    const auto of_key = context.dense.probs.row(keys.begin - context.dense.keys.begin + key);
    for (Index slot = 0; slot < probs.rows(); ++slot) {
      probs(slot, key) = of_key[context.dense.lane(head, kept[static_cast<std::size_t>(slot)])];
    }
  }
  return probs;
}

/// Averages the heads slot by slot, then aggregates over slots.
/// Source: QUOKA, Algorithm 1, lines 8 to 10 ("pre-aggregation").
Vector score_mean_first(const ChunkContext& context, const SelectorConfig& config,
                        const KeptQueries& kept) {
  const auto n_heads = static_cast<Index>(kept.size());
  const IndexRange candidates = context.candidates(config.candidates);
  const auto mean_over_heads = [&](const auto& of_head) -> Matrix {
    Matrix sum = of_head(0);
    for (Index head = 1; head < n_heads; ++head) {
      sum += of_head(head);
    }
    return sum / static_cast<float>(n_heads);
  };
  if (config.score == Score::softmax) {
    return aggregate_slots(candidates, config.query_aggregation, [&](IndexRange keys) {
      return mean_over_heads([&](Index head) {
        return slot_probs(context, head, kept[static_cast<std::size_t>(head)], keys);
      });
    });
  }
  const Matrix slots = mean_over_heads([&](Index head) {
    return slot_rows(context, config, head, kept[static_cast<std::size_t>(head)]);
  });
  return aggregate_slots(candidates, config.query_aggregation,
                         slot_products(context, config, slots));
}

/// Aggregates over slots per head, then over heads.
Vector score_heads_after(const ChunkContext& context, const SelectorConfig& config,
                         const KeptQueries& kept) {
  const IndexRange candidates = context.candidates(config.candidates);
  Vector total;
  for (Index head = 0; head < static_cast<Index>(kept.size()); ++head) {
    const std::vector<Index>& rows = kept[static_cast<std::size_t>(head)];
    Vector scores;
    if (config.score == Score::softmax) {
      scores = aggregate_slots(candidates, config.query_aggregation, [&](IndexRange keys) {
        return slot_probs(context, head, rows, keys);
      });
    } else {
      const Matrix slots = slot_rows(context, config, head, rows);
      scores = aggregate_slots(candidates, config.query_aggregation,
                               slot_products(context, config, slots));
    }
    if (head == 0) {
      total = std::move(scores);
    } else if (config.head_aggregation == HeadAggregation::max_after) {
      total = total.cwiseMax(scores);
    } else {
      total += scores;
    }
  }
  if (config.head_aggregation == HeadAggregation::mean_after) {
    total /= static_cast<float>(kept.size());
  }
  return total;
}

Vector score_quoka(const ChunkContext& context, const SelectorConfig& config) {
  const KeptQueries kept = keep_queries(context, config);
  return config.head_aggregation == HeadAggregation::mean_first
             ? score_mean_first(context, config, kept)
             : score_heads_after(context, config, kept);
}

}  // namespace

VectorD score_candidates(const ChunkContext& context, const SelectorConfig& config) {
  const IndexRange candidates = context.candidates(config.candidates);
  switch (config.selector) {
    case SelectorKind::quoka:
      return score_quoka(context, config).cast<double>();
    case SelectorKind::oracle:
      return context.dense.pooled.head(candidates.size());
    case SelectorKind::keydiff:
      return score_keydiff(context, candidates);
    case SelectorKind::snapkv:
      return score_snapkv(context, config, candidates);
    case SelectorKind::sample_attention:
      return score_sample_attention(context, config, candidates);
    case SelectorKind::sparq:
      return score_sparq(context, config, candidates);
    case SelectorKind::loki:
      return score_loki(context, config, candidates);
    case SelectorKind::less_is_more:
      return context.source_pooled->at(config.source_layer)
          .segment(candidates.begin, candidates.size());
    case SelectorKind::random:
    case SelectorKind::sink_recent:
      break;
  }
  return {};
}

}  // namespace quoka
