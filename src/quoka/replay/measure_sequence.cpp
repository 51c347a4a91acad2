#include "quoka/replay/measure_sequence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quoka/attention/sparse.hpp"
#include "quoka/metrics/output_error.hpp"
#include "quoka/replay/prefix_attention.hpp"

namespace quoka {
namespace {

/// Below this kept probability a row is attended again from its own logits: the dense probabilities
/// of keys far below the row's best lose digits when they leave the range of float32 (smallest
/// 1e-38).
constexpr double smallest_reused_mass = 1e-20;

/// A sequence being walked, with what its members share.
struct Walk {
  const ChunkBase& base;
  const AttentionRules& rules;
  const KeySequence& sequence;
  bool with_own_keys;               ///< candidates = history: the chunk's own keys are attended too
  std::vector<std::int32_t> place;  ///< per candidate its place in the sequence; only with needles
  std::vector<Index>
      first_visible;  ///< per token the first place it may see; only without own keys
};

Index n_rows(const Walk& walk) { return walk.base.context.n_rows(); }

std::vector<std::int32_t> places_of(const ChunkBase& base, const KeySequence& sequence) {
  std::vector<std::int32_t> place(static_cast<std::size_t>(base.context.dense.keys.size()),
                                  std::numeric_limits<std::int32_t>::max());
  for (std::size_t i = 0; i < sequence.keys.size(); ++i) {
    const Index offset = sequence.keys[i] - base.context.dense.keys.begin;
    place[static_cast<std::size_t>(offset)] = static_cast<std::int32_t>(i);
  }
  return place;
}

/// Per token the first place of the sequence that it may see: with fewer keys its row is empty.
std::vector<Index> first_visible_places(const ChunkBase& base, const KeySequence& sequence) {
  std::vector<Index> first;
  for (const IndexRange visible : base.visible) {
    const auto found = std::ranges::find_if(
        sequence.keys, [visible](std::int32_t key) { return visible.contains(key); });
    first.push_back(found - sequence.keys.begin());
  }
  return first;
}

/// The kept keys that one token may see, for a row that is attended again.
std::vector<std::int32_t> visible_kept_keys(const Walk& walk, Index n_keys, Index token) {
  const IndexRange visible = walk.base.visible[static_cast<std::size_t>(token)];
  std::vector<std::int32_t> keys;
  for (Index i = 0; i < n_keys; ++i) {
    const std::int32_t key = walk.sequence.keys[static_cast<std::size_t>(i)];
    if (visible.contains(key)) {
      keys.push_back(key);
    }
  }
  if (walk.with_own_keys) {
    const Index begin = std::max(visible.begin, walk.base.context.chunk_begin());
    for (Index key = begin; key < visible.end; ++key) {
      keys.push_back(static_cast<std::int32_t>(key));
    }
  }
  return keys;
}

/// True if the token sees none of the kept keys (never with the chunk's own keys: it sees itself).
bool is_empty_row(const Walk& walk, Index n_keys, Index token) {
  return !walk.with_own_keys && walk.first_visible[static_cast<std::size_t>(token)] >= n_keys;
}

/// Fills the row metrics of one head: [n_row_metrics, n_rows]. Returns the number of empty rows.
Index measure_rows(const Walk& walk, const PrefixSums& sums, Index n_keys, Index head,
                   Eigen::Block<Matrix> metrics) {
  const ChunkBase& base = walk.base;
  const DenseChunk& dense = base.context.dense;
  const auto set = [&metrics](RowMetric metric, Index token, float value) {
    metrics(static_cast<Index>(metric), token) = value;
  };
  Index n_empty = 0;
  Eigen::RowVectorXf out(base.context.group.v.cols());
  for (Index token = 0; token < n_rows(walk); ++token) {
    if (is_empty_row(walk, n_keys, token)) {
      ++n_empty;
      continue;
    }
    const Index row = head * n_rows(walk) + token;
    const double mass = sums.mass[row] + (walk.with_own_keys ? base.own_mass[row] : 0.0);
    const double sink = static_cast<double>(dense.sink_probs[row]);
    if (mass + sink < smallest_reused_mass) {
      out = sparse_row(base.context.group, walk.rules, head, dense.rows.begin + token,
                       visible_kept_keys(walk, n_keys, token));
    } else {
      out = sums.numerator.row(row);
      if (walk.with_own_keys) {
        out += base.own_numerator.row(row);
      }
      out *= static_cast<float>(1.0 / (mass + sink));
    }
    const OutputError error = output_error(out.data(), &dense.out(row, 0), out.size());
    const double kept_share = (mass + sink) / (base.visible_mass[row] + sink);
    set(RowMetric::mass_recall, token, ratio_or_nan(mass, base.visible_mass[row]));
    set(RowMetric::mass_recall_history, token,
        ratio_or_nan(sums.history[row], base.history_mass[row]));
    set(RowMetric::mass_recall_no_sink, token,
        ratio_or_nan(sums.history_no_sink[row], base.history_no_sink_mass[row]));
    set(RowMetric::kl, token,
        kept_share < smallest_denominator ? std::numeric_limits<float>::quiet_NaN()
                                          : static_cast<float>(-std::log(kept_share)));
    set(RowMetric::out_rel_l2, token, error.rel_l2);
    set(RowMetric::out_cos, token, error.cosine);
    set(RowMetric::out_max_abs, token, error.max_abs);
  }
  return n_empty;
}

/// Needle metrics of one head. The keys are the group's, the mass is the head's.
void measure_needles(const Walk& walk, Index n_keys, Index head, ChunkRecord& record) {
  const DenseChunk& dense = walk.base.context.dense;
  for (const ChunkNeedles& needles : walk.base.needles) {
    for (const IndexRange span : needles.spans) {
      const Index offset = span.begin - dense.keys.begin;
      const auto is_kept = [&](Index i) {
        return walk.place[static_cast<std::size_t>(offset + i)] < n_keys;
      };
      Index n_kept = 0;
      for (Index i = 0; i < span.size(); ++i) {
        n_kept += is_kept(i) ? 1 : 0;
      }
      record[ChunkMetric::needle_key_recall].add(static_cast<double>(n_kept) /
                                                 static_cast<double>(span.size()));
      for (const Index token : needles.rows) {
        if (is_empty_row(walk, n_keys, token)) {
          continue;
        }
        const auto p = dense.probs.row(head * n_rows(walk) + token).segment(offset, span.size());
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

SetMetrics measure_set(const Walk& walk, const OracleRanks& oracle, Index n_keys) {
  const ChunkBase& base = walk.base;
  const Index chunk_begin = base.context.chunk_begin();
  double pooled = 0;
  Index n_shared = 0;
  Index kept_pairs = 0;
  Index kept_history_pairs = 0;
  for (Index i = 0; i < n_keys; ++i) {
    const Index key = walk.sequence.keys[static_cast<std::size_t>(i)];
    pooled += base.context.pooled[key - base.context.dense.keys.begin];
    n_shared += oracle.keeps(key, n_keys) ? 1 : 0;
    const Index pairs = base.rows_that_see(key);
    kept_pairs += pairs;
    kept_history_pairs += key < chunk_begin ? pairs : 0;
  }
  Index history_pairs = 0;
  Index own_pairs = 0;
  for (const IndexRange visible : base.visible) {
    const Index own_begin = std::max(visible.begin, chunk_begin);
    history_pairs += own_begin - visible.begin;
    own_pairs += visible.end - own_begin;
  }
  const Index attended = kept_pairs + (walk.with_own_keys ? own_pairs : 0);
  const auto ratio = [](auto part, auto whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  return {.oracle_ratio = oracle.mass(n_keys) < smallest_denominator
                              ? std::numeric_limits<double>::quiet_NaN()
                              : pooled / oracle.mass(n_keys),
          .topk_overlap = ratio(n_shared, n_keys),
          .density_history = ratio(kept_history_pairs, history_pairs),
          .density = ratio(attended, history_pairs + own_pairs),
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
  Walk walk{.base = base,
            .rules = rules,
            .sequence = sequence,
            .with_own_keys = candidates == Candidates::history,
            .place = {},
            .first_visible = {}};
  if (!base.needles.empty()) {
    walk.place = places_of(base, sequence);
  }
  if (!walk.with_own_keys) {
    walk.first_visible = first_visible_places(base, sequence);
  }
  PrefixAttention prefix(base.context, sequence, base.sink_size);
  for (const SequenceMember& member : members) {
    const PrefixSums& sums = prefix.at(member.n_keys);
    const SetMetrics set = measure_set(walk, oracle, member.n_keys);
    for (Index head = 0; head < base.context.group.group_size(); ++head) {
      ChunkRecord& record = member.cell->record(chunk, head);
      record.n_empty_rows =
          measure_rows(walk, sums, member.n_keys, head, member.cell->rows(chunk, head));
      measure_needles(walk, member.n_keys, head, record);
      record_set(set, record);
    }
  }
}

}  // namespace quoka
