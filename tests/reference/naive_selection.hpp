#pragma once

/// The slow reference, part 2: which keys each chunk keeps per KV head. One function per sentence
/// of the definition.

#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

#include "quoka/selection/config.hpp"
#include "reference/naive_attention.hpp"

namespace quoka::naive {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Smallest gap met at any decision, relative to the size of the values compared; exact ties do not
/// count. A float32 engine must decide the same way when this is far above its rounding.
struct Gap {
  double smallest = std::numeric_limits<double>::infinity();

  void see(double a, double b, double magnitude) {
    if (a != b && magnitude > 0) {
      smallest = std::min(smallest, std::abs(a - b) / magnitude);
    }
  }
};

/// Row ranges [begin, end) of the chunks; the first has chunk_offset rows when that is > 0.
inline std::vector<IndexRange> chunk_rows(Index n_tokens, const SelectorConfig& config) {
  std::vector<IndexRange> chunks;
  Index begin = 0;
  while (begin < n_tokens) {
    const bool short_one = begin == 0 && config.chunk_offset > 0;
    const Index end =
        std::min(n_tokens, begin + (short_one ? config.chunk_offset : config.chunk_size));
    chunks.push_back({begin, end});
    begin = end;
  }
  return chunks;
}

/// Keys that compete: visible to at least one row of the chunk, and in the history or, for
/// candidates = cache, anywhere up to the chunk's end.
inline Positions candidate_keys(const Layer& layer, IndexRange rows, Candidates candidates) {
  const Index end = layer.position(candidates == Candidates::history ? rows.begin : rows.end);
  Positions keys;
  for (Index key = 0; key < end; ++key) {
    bool seen = false;
    for (Index row = rows.begin; row < rows.end; ++row) {
      seen = seen || is_visible(layer.rules, layer.position(row), key);
    }
    if (seen) {
      keys.push_back(key);
    }
  }
  return keys;
}

/// Number of keys asked for: the number as written, or the percentage of the candidates rounded up
/// on the decimal as written, at least 1.
inline Index requested_keys(const Budget& budget, Index n_candidates) {
  const std::string text = budget.text();
  if (text.back() != '%') {
    return static_cast<Index>(std::stoll(text));
  }
  const std::size_t dot_at = text.find('.');
  std::string decimals = dot_at == std::string::npos ? "" : text.substr(dot_at + 1);
  decimals = decimals.substr(0, decimals.find('%'));
  Index numerator = static_cast<Index>(std::stoll(text));
  Index denominator = 100;
  for (const char digit : decimals) {
    numerator = numerator * 10 + (digit - '0');
    denominator *= 10;
  }
  return std::max<Index>(1, (numerator * n_candidates + denominator - 1) / denominator);
}

// ---- random choices
// -------------------------------------------------------------------------------

/// SplitMix64's finaliser chained over the five coordinates.
inline std::uint64_t random_draw(std::uint64_t seed, Index layer, Index chunk_begin, Index head,
                                 Index position) {
  std::uint64_t state = 0;
  for (const std::uint64_t value :
       {seed, static_cast<std::uint64_t>(layer), static_cast<std::uint64_t>(chunk_begin),
        static_cast<std::uint64_t>(head), static_cast<std::uint64_t>(position)}) {
    state = state + value + 0x9e3779b97f4a7c15ULL;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ULL;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebULL;
    state = state ^ (state >> 31);
  }
  return state;
}

/// 0..n-1 ordered by the values, smallest first, ties to the lower number.
template <typename Value>
Positions ascending_order(const std::vector<Value>& values) {
  Positions order(values.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return at(values, a) < at(values, b); });
  return order;
}

inline Positions random_order(const Layer& layer, IndexRange rows, std::uint64_t seed, Index head,
                              const Positions& positions) {
  std::vector<std::uint64_t> draws;
  for (const Index position : positions) {
    draws.push_back(random_draw(seed, layer.layer_idx, layer.position(rows.begin), head, position));
  }
  return ascending_order(draws);
}

// ---- step 1: keep queries
// -------------------------------------------------------------------------

inline Block chunk_queries(const Layer& layer, Index head, IndexRange rows) {
  const Block& q = at(layer.q, head);
  return {q.begin() + rows.begin, q.begin() + rows.end};
}

inline Row mean_query(const Layer& layer, Index head, IndexRange rows, QueryMean which) {
  Block queries = chunk_queries(layer, head, rows);
  if (which == QueryMean::normalized) {
    for (Row& query : queries) {
      query = unit(query);
    }
  }
  return mean(queries);
}

/// Value per row of the chunk that orders the rows, smallest first: for one head.
inline Row row_values(const Layer& layer, Index head, IndexRange rows,
                      const SelectorConfig& config) {
  const Row m = mean_query(layer, head, rows, config.query_mean);
  Row values;
  for (const Row& query : chunk_queries(layer, head, rows)) {
    const double by_norm = -norm(query);
    const double sim = cosine(query, m);
    values.push_back(config.query_rule == QueryRule::largest_norm     ? by_norm
                     : config.query_rule == QueryRule::highest_cosine ? -sim
                                                                      : sim);
  }
  return values;
}

/// The heads' values averaged row by row.
inline Row averaged(const Block& per_head) { return mean(per_head); }

/// Pairwise cosines of the chunk's rows, for one head.
inline Block row_cosines(const Layer& layer, Index head, IndexRange rows) {
  const Block queries = chunk_queries(layer, head, rows);
  Block cosines;
  for (const Row& a : queries) {
    cosines.emplace_back();
    for (const Row& b : queries) {
      cosines.back().push_back(cosine(a, b));
    }
  }
  return cosines;
}

/// Starts at the lowest value; then repeatedly the row whose largest cosine to the kept ones is
/// smallest. cosines holds one [C][C] block per head that takes part, averaged here.
inline Positions farthest_points(const Row& values, const std::vector<Block>& cosines, Index n,
                                 Gap& gap) {
  const Positions by_value = ascending_order(values);
  Positions kept = {by_value.front()};
  gap.see(at(values, by_value[0]), at(values, by_value[1]), 1);
  while (size(kept) < n) {
    Row largest;
    for (Index i = 0; i < size(values); ++i) {
      double value = -2;
      for (const Index j : kept) {
        double sum = 0;
        for (const Block& block : cosines) {
          sum += at(at(block, i), j);
        }
        value = std::max(value, sum / static_cast<double>(cosines.size()));
      }
      largest.push_back(std::find(kept.begin(), kept.end(), i) == kept.end() ? value : 3);
    }
    const Positions order = ascending_order(largest);
    kept.push_back(order[0]);
    gap.see(at(largest, order[0]), at(largest, order[1]), 1);
  }
  return kept;
}

/// The rows (counted from the chunk's first) that the heads listed keep together, in rank order.
/// random_head names the head in the random draw.
inline Positions kept_rows(const Layer& layer, const Positions& heads, Index random_head,
                           IndexRange rows, const SelectorConfig& config, Gap& gap) {
  const Index n_rows = rows.size();
  const Index n = config.n_sel_queries;
  Positions all(static_cast<std::size_t>(n_rows));
  std::iota(all.begin(), all.end(), Index{0});
  if (n_rows <= n || config.query_rule == QueryRule::all) {
    return all;
  }
  Positions order;
  if (config.query_rule == QueryRule::random) {
    Positions positions;
    for (const Index row : all) {
      positions.push_back(layer.position(rows.begin + row));
    }
    order = random_order(layer, rows, config.seed, random_head, positions);
  } else if (config.query_rule == QueryRule::stride) {
    for (Index i = 0; i < n; ++i) {
      order.push_back((2 * i + 1) * n_rows / (2 * n));  // floor((i + 0.5) C / n)
    }
  } else if (config.query_rule == QueryRule::first) {
    order = all;
  } else if (config.query_rule == QueryRule::last) {
    order.assign(all.end() - n, all.end());
  } else {
    Block per_head;
    std::vector<Block> cosines;
    for (const Index head : heads) {
      per_head.push_back(row_values(layer, head, rows, config));
      cosines.push_back(row_cosines(layer, head, rows));
    }
    const Row values = averaged(per_head);
    if (config.query_rule == QueryRule::farthest_point) {
      return farthest_points(values, cosines, n, gap);
    }
    order = ascending_order(values);
    for (Index i = 0; i < n; ++i) {
      const double magnitude = std::max(std::abs(at(values, order.front())), 1.0);
      gap.see(at(values, at(order, i)), at(values, at(order, i + 1)), magnitude);
    }
  }
  order.resize(static_cast<std::size_t>(n));
  return order;
}

/// Kept rows of every head of the group, slot by slot: [group_size][n_slots].
inline std::vector<Positions> group_slots(const Layer& layer, Index kv_head, IndexRange rows,
                                          const SelectorConfig& config, Gap& gap) {
  Positions heads;
  for (Index i = 0; i < layer.group_size(); ++i) {
    heads.push_back(kv_head * layer.group_size() + i);
  }
  std::vector<Positions> slots;
  for (const Index head : heads) {
    const bool shared = config.query_scope == QueryScope::per_group;
    slots.push_back(kept_rows(layer, shared ? heads : Positions{head}, shared ? kv_head : head,
                              rows, config, gap));
    if (config.pairing == Pairing::position) {
      std::sort(slots.back().begin(), slots.back().end());
    }
  }
  return slots;
}

}  // namespace quoka::naive
