#pragma once

/// The slow reference, part 3: scores of the candidates, their order, and the kept set.

#include <utility>

#include "reference/naive_baselines.hpp"
#include "reference/naive_place.hpp"

namespace quoka::naive {

// ---- steps 2 and 3: score and aggregate
// -----------------------------------------------------------

/// Score of a candidate for one slot of one head: cosine, raw product, or the row's exact
/// probability.
inline double slot_score(const Place& place, Index in_group, Index row, Index key, Score score) {
  const Index head = place.head(in_group);
  const Row& query = at(at(place.layer.q, head), place.rows.begin + row);
  switch (score) {
    case Score::cosine:
      return cosine(query, place.key(key));
    case Score::dot:
      return dot(query, place.key(key));
    case Score::softmax:
      return at(at(at(place.dense, head), place.rows.begin + row).p, key);
  }
  return nan;
}

/// Score of a candidate for one slot of the group. Averaging the (unit or raw) queries before the
/// product is literal here for cosine and dot; probabilities are averaged as they are.
inline double averaged_slot_score(const Place& place, const std::vector<Positions>& slots,
                                  Index slot, Index key, Score score) {
  if (score == Score::softmax) {
    double sum = 0;
    for (Index i = 0; i < size(slots); ++i) {
      sum += slot_score(place, i, at(at(slots, i), slot), key, score);
    }
    return sum / static_cast<double>(slots.size());
  }
  Block queries;
  for (Index i = 0; i < size(slots); ++i) {
    const Row& query =
        at(at(place.layer.q, place.head(i)), place.rows.begin + at(at(slots, i), slot));
    queries.push_back(score == Score::cosine ? unit(query) : query);
  }
  const Row& raw_key = place.key(key);
  return dot(mean(queries), score == Score::cosine ? unit(raw_key) : raw_key);
}

inline double over_slots(const Row& values, QueryAggregation how) {
  return how == QueryAggregation::max ? *std::max_element(values.begin(), values.end())
                                      : std::accumulate(values.begin(), values.end(), 0.0) /
                                            static_cast<double>(values.size());
}

inline double quoka_score(const Place& place, const std::vector<Positions>& slots, Index key,
                          const SelectorConfig& config) {
  const Index n_slots = size(slots.front());
  if (config.head_aggregation == HeadAggregation::mean_first) {
    Row values;
    for (Index slot = 0; slot < n_slots; ++slot) {
      values.push_back(averaged_slot_score(place, slots, slot, key, config.score));
    }
    return over_slots(values, config.query_aggregation);
  }
  Row per_head;
  for (Index i = 0; i < size(slots); ++i) {
    Row values;
    for (Index slot = 0; slot < n_slots; ++slot) {
      values.push_back(slot_score(place, i, at(at(slots, i), slot), key, config.score));
    }
    per_head.push_back(over_slots(values, config.query_aggregation));
  }
  return over_slots(per_head, config.head_aggregation == HeadAggregation::max_after
                                  ? QueryAggregation::max
                                  : QueryAggregation::mean);
}

/// Dense probability of a key summed over the chunk's rows and the group's heads.
inline double pooled_probability(const Place& place, Index key) {
  double sum = 0;
  for (Index i = 0; i < place.layer.group_size(); ++i) {
    for (Index row = place.rows.begin; row < place.rows.end; ++row) {
      sum += at(at(at(place.dense, place.head(i)), row).p, key);
    }
  }
  return sum;
}

/// Score per candidate, or empty for selectors without scores.
inline Row candidate_scores(const Place& place, const Positions& candidates,
                            const SelectorConfig& config, Gap& gap) {
  Row scores;
  if (candidates.empty()) {
    return scores;
  }
  if (config.selector == SelectorKind::quoka) {
    const auto slots = group_slots(place.layer, place.kv_head, place.rows, config, gap);
    for (const Index key : candidates) {
      scores.push_back(quoka_score(place, slots, key, config));
    }
  } else if (config.selector == SelectorKind::oracle) {
    for (const Index key : candidates) {
      scores.push_back(pooled_probability(place, key));
    }
  } else if (config.selector == SelectorKind::keydiff) {
    Block units;
    for (const Index key : candidates) {
      units.push_back(unit(place.key(key)));
    }
    const Row m = mean(units);
    for (const Index key : candidates) {
      scores.push_back(-cosine(place.key(key), m));
    }
  } else {
    return baseline_scores(place, candidates, config, gap);
  }
  return scores;
}

// ---- step 4: keep keys
// ----------------------------------------------------------------------------

/// Candidates in the order in which they are taken, and how many of the front are forced.
struct Sequence {
  Positions order;  ///< numbers into the candidate list
  Index n_forced = 0;
};

/// Forced keys first (the first ones ascending, then the most recent, latest first), then `rest`.
inline Sequence with_forced(Index n_candidates, Index keep_first, Index keep_recent,
                            const Positions& rest) {
  Sequence sequence;
  std::vector<bool> taken(static_cast<std::size_t>(n_candidates), false);
  const auto take = [&](Index i) {
    if (!taken[static_cast<std::size_t>(i)]) {
      taken[static_cast<std::size_t>(i)] = true;
      sequence.order.push_back(i);
    }
  };
  for (Index i = 0; i < std::min(keep_first, n_candidates); ++i) {
    take(i);
  }
  for (Index i = 0; i < std::min(keep_recent, n_candidates); ++i) {
    take(n_candidates - 1 - i);
  }
  sequence.n_forced = size(sequence.order);
  for (const Index i : rest) {
    take(i);
  }
  return sequence;
}

inline Sequence key_sequence(const Place& place, const Positions& candidates, const Row& scores,
                             const SelectorConfig& config) {
  const Index n = size(candidates);
  if (config.selector == SelectorKind::sink_recent) {
    return with_forced(n, config.keep_first, n, {});
  }
  if (config.selector == SelectorKind::random) {
    return with_forced(
        n, config.keep_first, config.keep_recent,
        random_order(place.layer, place.rows, config.seed, place.kv_head, candidates));
  }
  Row negated;
  for (const double score : scores) {
    negated.push_back(-score);
  }
  const bool is_oracle = config.selector == SelectorKind::oracle;
  return with_forced(n, is_oracle ? 0 : config.keep_first, is_oracle ? 0 : config.keep_recent,
                     ascending_order(negated));
}

/// What one (chunk, KV head) kept.
struct Kept {
  IndexRange rows;
  Index kv_head = 0;
  Index n_candidates = 0;
  Index requested = 0;
  Positions keys;         ///< ascending absolute positions
  Positions oracle_keys;  ///< as many as keys
  double cut_score = nan;
  double cut_margin = nan;
};

/// The first n of the candidates in that order, as ascending positions.
inline Positions first_keys(const Positions& candidates, const Positions& order, Index n) {
  Positions keys;
  for (Index i = 0; i < n; ++i) {
    keys.push_back(at(candidates, at(order, i)));
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

/// Notes how clear the cut between kept and rejected was. Probabilities have a relative error,
/// cosines and products one that goes with the largest. If the cut is an exact tie, a score that is
/// nearly but not exactly as large is unclear too.
inline void see_cut(const Row& scores, const Sequence& sequence, Index n_kept, bool probabilities,
                    Gap& gap) {
  if (scores.empty() || n_kept >= size(sequence.order) || n_kept <= sequence.n_forced) {
    return;
  }
  const double kept = at(scores, at(sequence.order, n_kept - 1));
  const double rejected = at(scores, at(sequence.order, n_kept));
  double largest = 0;
  for (const double score : scores) {
    largest = std::max(largest, std::abs(score));
  }
  const double magnitude = probabilities ? std::abs(kept) : largest;
  gap.see(kept, rejected, magnitude);
  for (const double score : scores) {
    if (kept == rejected) {
      gap.see(kept, score, magnitude);
    }
  }
}

inline Kept select_keys(const Place& place, const SelectorConfig& config, Gap& gap) {
  const Positions candidates = candidate_keys(place.layer, place.rows, config.candidates);
  Kept kept;
  kept.rows = place.rows;
  kept.kv_head = place.kv_head;
  kept.n_candidates = size(candidates);
  kept.requested = requested_keys(config.budget, kept.n_candidates);
  const Index n_kept = std::min(kept.requested, kept.n_candidates);

  const Row scores = candidate_scores(place, candidates, config, gap);
  const Sequence sequence = key_sequence(place, candidates, scores, config);
  kept.keys = first_keys(candidates, sequence.order, n_kept);
  if (!scores.empty() && n_kept > sequence.n_forced && n_kept < kept.n_candidates) {
    kept.cut_score = at(scores, at(sequence.order, n_kept - 1));
    kept.cut_margin = kept.cut_score - at(scores, at(sequence.order, n_kept));
  }
  const bool probabilities =
      config.selector == SelectorKind::oracle || is_probability(config.selector) ||
      (config.selector == SelectorKind::quoka && config.score == Score::softmax);
  see_cut(scores, sequence, n_kept, probabilities, gap);

  SelectorConfig oracle;
  oracle.selector = SelectorKind::oracle;
  const Row best = candidate_scores(place, candidates, oracle, gap);
  const Sequence by_mass = key_sequence(place, candidates, best, oracle);
  kept.oracle_keys = first_keys(candidates, by_mass.order, n_kept);
  see_cut(best, by_mass, n_kept, true, gap);
  return kept;
}

}  // namespace quoka::naive
