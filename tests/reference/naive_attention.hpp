#pragma once

/// The slow reference, part 1: attention, word by word, in double precision and plain loops. Shares
/// no code with the engine; from it come only plain data types. It is the judge, so it is never
/// optimised.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "quoka/core/attention_rules.hpp"
#include "quoka/core/matrix.hpp"

namespace quoka::naive {

using Row = std::vector<double>;
using Block = std::vector<Row>;  ///< [rows][columns]
using Positions = std::vector<Index>;

/// Vectors are indexed with signed positions everywhere here.
template <typename T>
const T& at(const std::vector<T>& values, Index i) {
  return values.at(static_cast<std::size_t>(i));
}
template <typename T>
T& at(std::vector<T>& values, Index i) {
  return values.at(static_cast<std::size_t>(i));
}
template <typename T>
Index size(const std::vector<T>& values) {
  return static_cast<Index>(values.size());
}

/// One layer: q [n_q_heads] blocks [T, Dk], k and v [n_kv_heads] blocks [S, Dk] and [S, Dv].
/// Key j is at position j, row r of q is at position q_offset + r.
struct Layer {
  std::vector<Block> q;
  std::vector<Block> k;
  std::vector<Block> v;
  AttentionRules rules;
  Index layer_idx = 0;

  [[nodiscard]] Index n_q_heads() const { return size(q); }
  [[nodiscard]] Index n_kv_heads() const { return size(k); }
  [[nodiscard]] Index group_size() const { return n_q_heads() / n_kv_heads(); }
  [[nodiscard]] Index kv_head_of(Index head) const { return head / group_size(); }
  [[nodiscard]] Index n_tokens() const { return size(q.front()); }
  [[nodiscard]] Index n_keys() const { return size(k.front()); }
  [[nodiscard]] Index position(Index row) const { return rules.q_offset + row; }
};

inline double dot(const Row& a, const Row& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

inline double norm(const Row& a) { return std::sqrt(dot(a, a)); }

/// The row divided by its L2 norm; zero stays zero.
inline Row unit(Row a) {
  const double length = norm(a);
  for (double& x : a) {
    x = length > 0 ? x / length : 0;
  }
  return a;
}

/// A zero vector has cosine 0 with everything.
inline double cosine(const Row& a, const Row& b) { return dot(unit(a), unit(b)); }

inline Row mean(const Block& rows) {
  Row sum(rows.front().size(), 0);
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      sum[c] += row[c];
    }
  }
  for (double& x : sum) {
    x /= static_cast<double>(rows.size());
  }
  return sum;
}

/// May the query at query_pos see the key at key_pos? The window counts the query itself.
inline bool is_visible(const AttentionRules& rules, Index query_pos, Index key_pos) {
  const bool causal = key_pos <= query_pos;
  const bool in_window = rules.sliding_window == 0 || query_pos - key_pos < rules.sliding_window;
  const bool same_chunk = rules.attention_chunk == 0 ||
                          query_pos / rules.attention_chunk == key_pos / rules.attention_chunk;
  return causal && in_window && same_chunk;
}

inline Positions visible_keys(const Layer& layer, Index row) {
  Positions keys;
  for (Index j = 0; j < layer.n_keys(); ++j) {
    if (is_visible(layer.rules, layer.position(row), j)) {
      keys.push_back(j);
    }
  }
  return keys;
}

/// Scale, then cap, then ALiBi.
inline double logit(const Layer& layer, Index head, Index row, Index key) {
  const AttentionRules& rules = layer.rules;
  double value =
      rules.scale * dot(at(at(layer.q, head), row), at(at(layer.k, layer.kv_head_of(head)), key));
  if (rules.softcap > 0) {
    value = rules.softcap * std::tanh(value / rules.softcap);
  }
  if (rules.alibi != Alibi::none) {
    const double slope = static_cast<double>(at(rules.alibi_slopes, head));
    const double bias = slope * static_cast<double>(key - layer.position(row));
    value += rules.alibi == Alibi::scaled ? bias * rules.scale : bias;
  }
  return value;
}

/// What a row gets from a set of keys.
struct Attended {
  Row p;                        ///< [S] probability per key position; 0 where the row does not look
  double sink_probability = 0;  ///< of the head's sink logit; 0 without sinks
  Row out;                      ///< [Dv]
};

/// Softmax over exactly these keys, all visible to the row, with the head's sink logit in the
/// denominator only. No key at all gives a zero output.
inline Attended attend(const Layer& layer, Index head, Index row, const Positions& keys) {
  const Block& v = at(layer.v, layer.kv_head_of(head));
  Attended result;
  result.p.assign(static_cast<std::size_t>(layer.n_keys()), 0);
  result.out.assign(v.front().size(), 0);
  if (keys.empty()) {
    return result;
  }
  const bool has_sink = !layer.rules.sinks.empty();
  const double sink = has_sink ? static_cast<double>(at(layer.rules.sinks, head)) : 0;
  Row logits;
  for (const Index key : keys) {
    logits.push_back(logit(layer, head, row, key));
  }
  double highest = *std::max_element(logits.begin(), logits.end());
  highest = has_sink ? std::max(highest, sink) : highest;
  double total = has_sink ? std::exp(sink - highest) : 0;
  for (const double value : logits) {
    total += std::exp(value - highest);
  }
  result.sink_probability = has_sink ? std::exp(sink - highest) / total : 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double p = std::exp(logits[i] - highest) / total;
    at(result.p, keys[i]) = p;
    for (std::size_t c = 0; c < result.out.size(); ++c) {
      result.out[c] += p * at(v, keys[i])[c];
    }
  }
  return result;
}

/// Dense attention of a whole layer: [n_q_heads][T].
using Dense = std::vector<std::vector<Attended>>;

inline Dense dense_attention(const Layer& layer) {
  Dense dense(static_cast<std::size_t>(layer.n_q_heads()));
  for (Index head = 0; head < layer.n_q_heads(); ++head) {
    for (Index row = 0; row < layer.n_tokens(); ++row) {
      at(dense, head).push_back(attend(layer, head, row, visible_keys(layer, row)));
    }
  }
  return dense;
}

}  // namespace quoka::naive
