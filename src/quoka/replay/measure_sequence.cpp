#include "quoka/replay/measure_sequence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quoka/metrics/output_error.hpp"
#include "quoka/replay/key_walk.hpp"
#include "quoka/replay/measure_rows.hpp"

namespace quoka {
namespace {

/// Needle metrics of one head. The keys are the group's, the mass is the head's.
void measure_needles(const KeyWalk& walk, Index n_keys, Index head, ChunkRecord& record) {
  const DenseChunk& dense = walk.base.context.dense;
  for (const ChunkNeedles& needles : walk.base.needles) {
    for (const IndexRange span : needles.spans) {
      const Index offset = span.begin - dense.keys.begin;
      const auto is_kept = [&](Index i) {
        return walk.places[static_cast<std::size_t>(offset + i)] < n_keys;
      };
      Index n_kept = 0;
      for (Index i = 0; i < span.size(); ++i) {
        n_kept += is_kept(i) ? 1 : 0;
      }
      record[ChunkMetric::needle_key_recall].add(static_cast<double>(n_kept) /
                                                 static_cast<double>(span.size()));
      for (const Index token : needles.rows) {
        if (walk.is_empty_row(n_keys, token)) {
          continue;
        }
        const auto p = dense.probs.col(dense.lane(head, token)).segment(offset, span.size());
        double whole = 0;
        double kept = 0;
        for (Index i = 0; i < span.size(); ++i) {
          whole += static_cast<double>(p[i]);
          kept += is_kept(i) ? static_cast<double>(p[i]) : 0.0;
        }
        if (whole >= smallest_denominator) {
          record[ChunkMetric::needle_mass_recall].add(kept / whole);
        }
      }
    }
  }
}

/// Metrics of the kept set that all heads of the group share.
struct SetMetrics {
  double oracle_ratio = 0;
  double topk_overlap = 0;
  double density_history = 0;
  double density = 0;
  double cut_margin = 0;
};

SetMetrics measure_set(const KeyWalk& walk, Index n_keys) {
  const ChunkBase& base = walk.base;
  const auto n = static_cast<std::size_t>(n_keys);
  const Index n_shared = std::count_if(walk.ranks.begin(), walk.ranks.begin() + n_keys,
                                       [n_keys](std::int32_t rank) { return rank < n_keys; });
  const Index attended = walk.pairs[n] + (walk.with_own_keys ? base.own_pairs : 0);
  const double best = walk.oracle.mass(n_keys);
  const auto ratio = [](auto part, auto whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  return {.oracle_ratio = best < smallest_denominator ? std::numeric_limits<double>::quiet_NaN()
                                                      : walk.pooled[n] / best,
          .topk_overlap = ratio(n_shared, n_keys),
          .density_history = ratio(walk.history_pairs[n], base.history_pairs),
          .density = ratio(attended, base.history_pairs + base.own_pairs),
          .cut_margin = cut_off(walk.sequence, n_keys).margin};
}

/// Undefined values (0/0) are left out of the means.
void add_if_defined(MeanSum& mean, double value) {
  if (!std::isnan(value)) {
    mean.add(value);
  }
}

void record_set(const SetMetrics& set, ChunkRecord& record) {
  add_if_defined(record[ChunkMetric::oracle_ratio], set.oracle_ratio);
  add_if_defined(record[ChunkMetric::topk_overlap], set.topk_overlap);
  add_if_defined(record[ChunkMetric::density_history], set.density_history);
  add_if_defined(record[ChunkMetric::density], set.density);
  add_if_defined(record[ChunkMetric::cut_margin], set.cut_margin);
}

}  // namespace

CutOff cut_off(const KeySequence& sequence, Index n_keys) {
  constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
  const auto n = static_cast<std::size_t>(n_keys);
  if (sequence.scores.empty() || n_keys <= sequence.n_forced) {
    return {undefined, undefined};
  }
  const double last = sequence.scores[n - 1];
  return {last, n < sequence.scores.size() ? last - sequence.scores[n] : undefined};
}

void measure_sequence(const ChunkBase& base, const AttentionRules& rules,
                      const KeySequence& sequence, Candidates candidates, const OracleRanks& oracle,
                      Index chunk, std::vector<SequenceMember> members) {
  const KeyWalk walk = key_walk(base, rules, sequence, candidates, oracle);
  const DenseChunk& dense = base.context.dense;
  PrefixAttention prefix(base, sequence, candidates);
  for (const SequenceMember& member : members) {
    const Matrix rows = measure_rows(walk, prefix.at(member.n_keys), member.n_keys);
    const SetMetrics set = measure_set(walk, member.n_keys);
    for (Index head = 0; head < base.context.group.group_size(); ++head) {
      member.cell->rows(chunk, head) = rows.middleCols(dense.lane(head, 0), dense.rows.size());
      ChunkRecord& record = member.cell->record(chunk, head);
      for (Index token = 0; token < dense.rows.size(); ++token) {
        record.n_empty_rows += walk.is_empty_row(member.n_keys, token) ? 1 : 0;
      }
      measure_needles(walk, member.n_keys, head, record);
      record_set(set, record);
    }
  }
}

}  // namespace quoka
