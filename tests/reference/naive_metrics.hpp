#pragma once

/// The slow reference, part 4: what is measured, per row and per chunk, and how it is reduced.

#include <map>
#include <optional>

#include "quoka/metrics/needles.hpp"
#include "reference/naive_scores.hpp"

namespace quoka::naive {

/// Denominators below this leave the row out.
constexpr double tiny = 1e-30;

inline bool contains(const Positions& sorted_keys, Index key) {
  return std::binary_search(sorted_keys.begin(), sorted_keys.end(), key);
}

/// Probability on those keys of the list that lie in [begin, end).
inline double mass(const Row& p, const Positions& keys, Index begin, Index end) {
  double sum = 0;
  for (const Index key : keys) {
    if (key >= begin && key < end) {
      sum += at(p, key);
    }
  }
  return sum;
}

inline double ratio(double part, double whole) { return whole < tiny ? nan : part / whole; }

/// A_i: kept keys visible to the row and, for candidates = history, the chunk's own visible keys.
inline Positions attended_keys(const Layer& layer, const Kept& kept, Index row,
                               Candidates candidates) {
  const Index begin = layer.position(kept.rows.begin);
  Positions keys;
  for (const Index key : visible_keys(layer, row)) {
    const bool own = candidates == Candidates::history && key >= begin;
    if (own || contains(kept.keys, key)) {
      keys.push_back(key);
    }
  }
  return keys;
}

/// Names of the row metrics in their stored order; true = higher is better.
inline const std::vector<std::pair<std::string, bool>>& row_metric_names() {
  static const std::vector<std::pair<std::string, bool>> names = {
      {"mass_recall", true}, {"mass_recall_history", true}, {"mass_recall_no_sink", true},
      {"kl", false},         {"out_rel_l2", false},         {"out_cos", true},
      {"out_max_abs", false}};
  return names;
}

inline const std::vector<std::string>& chunk_metric_names() {
  static const std::vector<std::string> names = {
      "oracle_ratio", "topk_overlap",      "density_history",   "density",
      "cut_margin",   "needle_key_recall", "needle_mass_recall"};
  return names;
}

/// All row metrics of one row that sees at least one key; NaN = left out.
inline Row row_metrics(const Layer& layer, const Attended& dense, const Attended& sparse,
                       const Positions& attended, Index row, Index chunk_begin, Index sink_size) {
  const Positions visible = visible_keys(layer, row);
  const auto recall = [&](Index begin, Index end) {
    return ratio(mass(dense.p, attended, begin, end), mass(dense.p, visible, begin, end));
  };
  const double kept_mass = mass(dense.p, attended, 0, layer.n_keys()) + dense.sink_probability;
  Row difference = sparse.out;
  double max_abs = 0;
  for (std::size_t c = 0; c < difference.size(); ++c) {
    difference[c] -= dense.out[c];
    max_abs = std::max(max_abs, std::abs(difference[c]));
  }
  const bool has_cosine = norm(dense.out) >= tiny && norm(sparse.out) >= tiny;
  return {recall(0, layer.n_keys()),
          recall(0, chunk_begin),
          recall(sink_size, chunk_begin),
          kept_mass < tiny ? nan : -std::log(kept_mass),
          ratio(norm(difference), norm(dense.out)),
          has_cosine ? cosine(dense.out, sparse.out) : nan,
          max_abs};
}

/// Linear interpolation at (n - 1) q.
inline double quantile(const Row& sorted, double q) {
  const double place = static_cast<double>(sorted.size() - 1) * q;
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// Adds the columns <name>_mean ... <name>_n_valid.
inline void add_statistics(std::map<std::string, double>& columns, const std::string& name,
                           bool higher_is_better, const Row& rows) {
  Row valid;
  for (const double value : rows) {
    if (!std::isnan(value)) {
      valid.push_back(value);
    }
  }
  std::sort(valid.begin(), valid.end());
  const bool any = !valid.empty();
  columns[name + "_mean"] =
      any ? std::accumulate(valid.begin(), valid.end(), 0.0) / static_cast<double>(valid.size())
          : nan;
  const std::vector<std::pair<std::string, double>> quantiles = {
      {"_p01", 0.01}, {"_p05", 0.05}, {"_p50", 0.5}, {"_p95", 0.95}, {"_p99", 0.99}};
  for (const auto& [suffix, q] : quantiles) {
    columns[name + suffix] = any ? quantile(valid, q) : nan;
  }
  columns[name + "_worst"] = !any ? nan : higher_is_better ? valid.front() : valid.back();
  columns[name + "_n_valid"] = static_cast<double>(valid.size());
}

/// Mean of what is not NaN; NaN if nothing is.
inline double mean_of_valid(const Row& values) {
  double sum = 0;
  double n = 0;
  for (const double value : values) {
    if (!std::isnan(value)) {
      sum += value;
      n += 1;
    }
  }
  return n > 0 ? sum / n : nan;
}

// ---- per (chunk, KV head)
// -------------------------------------------------------------------------

inline double oracle_ratio(const Place& place, const Kept& kept) {
  double on_kept = 0;
  for (const Index key : kept.keys) {
    on_kept += pooled_probability(place, key);
  }
  double on_best = 0;
  for (const Index key : kept.oracle_keys) {
    on_best += pooled_probability(place, key);
  }
  return ratio(on_kept, on_best);
}

inline double topk_overlap(const Kept& kept) {
  double both = 0;
  for (const Index key : kept.oracle_keys) {
    both += contains(kept.keys, key) ? 1 : 0;
  }
  return ratio(both, static_cast<double>(kept.oracle_keys.size()));
}

/// Attended over visible pairs of keys before `end`, summed over the chunk's rows.
inline double density(const Layer& layer, const Kept& kept, Index end, Candidates candidates) {
  double attended = 0;
  double visible = 0;
  for (Index row = kept.rows.begin; row < kept.rows.end; ++row) {
    for (const Index key : attended_keys(layer, kept, row, candidates)) {
      attended += key < end ? 1 : 0;
    }
    for (const Index key : visible_keys(layer, row)) {
      visible += key < end ? 1 : 0;
    }
  }
  return ratio(attended, visible);
}

// ---- needles
// --------------------------------------------------------------------------------------

/// Rows of the chunk whose position is marked question in the group.
inline Positions question_rows(const Layer& layer, const NeedleGroup& group, IndexRange rows) {
  Positions result;
  for (Index row = rows.begin; row < rows.end; ++row) {
    bool marked = false;
    for (const IndexRange& question : group.questions) {
      marked = marked || question.contains(layer.position(row));
    }
    if (marked) {
      result.push_back(row);
    }
  }
  return result;
}

/// A span counts if it lies wholly in the history and one of the rows sees all of it.
inline bool span_counts(const Layer& layer, IndexRange span, const Positions& rows,
                        Index chunk_begin) {
  if (span.size() == 0 || span.end > chunk_begin) {
    return false;
  }
  for (const Index row : rows) {
    bool sees_all = true;
    for (Index key = span.begin; key < span.end; ++key) {
      sees_all = sees_all && is_visible(layer.rules, layer.position(row), key);
    }
    if (sees_all) {
      return true;
    }
  }
  return false;
}

/// Values per (chunk, span) and per (row, span); rows without mass on the span left out.
struct NeedleValues {
  Row key_recalls;
  Row mass_recalls;
};

inline NeedleValues needle_values(const Place& place, const Kept& kept, Index head,
                                  const std::vector<NeedleGroup>& groups, Candidates candidates) {
  NeedleValues values;
  for (const NeedleGroup& group : groups) {
    const Positions rows = question_rows(place.layer, group, place.rows);
    for (const IndexRange& span : group.needles) {
      if (!span_counts(place.layer, span, rows, place.layer.position(place.rows.begin))) {
        continue;
      }
      double n_kept = 0;
      for (Index key = span.begin; key < span.end; ++key) {
        n_kept += contains(kept.keys, key) ? 1 : 0;
      }
      values.key_recalls.push_back(n_kept / static_cast<double>(span.size()));
      for (const Index row : rows) {
        const Positions attended = attended_keys(place.layer, kept, row, candidates);
        const Row& p = at(at(place.dense, head), row).p;
        const double on_span = mass(p, visible_keys(place.layer, row), span.begin, span.end);
        if (!attended.empty() && on_span >= tiny) {
          values.mass_recalls.push_back(mass(p, attended, span.begin, span.end) / on_span);
        }
      }
    }
  }
  return values;
}

}  // namespace quoka::naive
