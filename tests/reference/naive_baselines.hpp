#pragma once

/// The slow reference, part 4: scores of the methods that QUOKA is compared with.

#include "reference/naive_place.hpp"

namespace quoka::naive {

/// Dense probability of a key summed over some rows of the chunk and the group's heads.
inline double summed_probability(const Place& place, const Positions& rows, Index key) {
  double sum = 0;
  for (Index i = 0; i < place.layer.group_size(); ++i) {
    for (const Index row : rows) {
      sum += at(at(at(place.dense, place.head(i)), place.rows.begin + row).p, key);
    }
  }
  return sum;
}

inline Row snapkv_scores(const Place& place, const Positions& candidates,
                         const SelectorConfig& config) {
  Positions rows;
  for (Index row = 0; row < place.rows.size(); ++row) {
    if (row >= place.rows.size() - config.observation_window) {
      rows.push_back(row);
    }
  }
  Row pooled;
  for (Index i = 0; i < size(candidates); ++i) {
    double sum = 0;
    for (Index j = i - config.pool_size / 2; j <= i + config.pool_size / 2; ++j) {
      sum +=
          j >= 0 && j < size(candidates) ? summed_probability(place, rows, at(candidates, j)) : 0;
    }
    pooled.push_back(sum / static_cast<double>(config.pool_size));
  }
  return pooled;
}

inline Row sample_attention_scores(const Place& place, const Positions& candidates,
                                   const SelectorConfig& config) {
  Positions rows;
  const Index n = std::min(config.n_sel_queries, place.rows.size());
  for (Index i = 0; i < n; ++i) {
    rows.push_back(static_cast<Index>(
        std::floor((static_cast<double>(i) + 0.5) * static_cast<double>(place.rows.size()) /
                   static_cast<double>(n))));
  }
  Row scores;
  for (const Index key : candidates) {
    scores.push_back(summed_probability(place, rows, key));
  }
  return scores;
}

/// The channels of one head with the largest sum of |q| over the chunk.
inline Positions sparq_channels(const Place& place, Index head, Index n, Gap& gap) {
  Row negated;
  const Index head_dim = size(at(at(place.layer.q, head), Index{0}));
  for (Index c = 0; c < head_dim; ++c) {
    double sum = 0;
    for (Index row = place.rows.begin; row < place.rows.end; ++row) {
      sum += std::abs(at(at(at(place.layer.q, head), row), c));
    }
    negated.push_back(-sum);
  }
  Positions order = ascending_order(negated);
  if (n < head_dim) {
    gap.see(at(negated, at(order, n - 1)), at(negated, at(order, n)), at(negated, at(order, n)));
  }
  order.resize(static_cast<std::size_t>(n));
  return order;
}

/// One row's approximate attention over the candidates it may see; 0 for the others.
inline Row sparq_row(const Place& place, const Positions& candidates, Index head, Index row,
                     const Positions& channels) {
  const Row& q = at(at(place.layer.q, head), row);
  double part = 0;
  double whole = 0;
  for (Index c = 0; c < size(q); ++c) {
    whole += std::abs(at(q, c));
  }
  for (const Index c : channels) {
    part += std::abs(at(q, c));
  }
  const AttentionRules& rules = place.layer.rules;
  const double scale = part > 0 ? rules.scale / std::sqrt(part / whole) : rules.scale;
  Row weights(candidates.size(), 0.0);
  double largest = -std::numeric_limits<double>::infinity();
  for (const bool is_maximum : {true, false}) {
    for (Index i = 0; i < size(candidates); ++i) {
      const Index key = at(candidates, i);
      if (!is_visible(rules, place.layer.position(row), key)) {
        continue;
      }
      double logit = 0;
      for (const Index c : channels) {
        logit += at(q, c) * at(place.key(key), c);
      }
      logit *= scale;
      if (is_maximum) {
        largest = std::max(largest, logit);
      } else {
        weights[static_cast<std::size_t>(i)] = std::exp(logit - largest);
      }
    }
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) {
    weight = sum > 0 ? weight / sum : 0;
  }
  return weights;
}

inline Row sparq_scores(const Place& place, const Positions& candidates, Index n_channels,
                        Gap& gap) {
  Row scores(candidates.size(), 0.0);
  for (Index i = 0; i < place.layer.group_size(); ++i) {
    const Positions channels = sparq_channels(place, place.head(i), n_channels, gap);
    for (Index row = place.rows.begin; row < place.rows.end; ++row) {
      const Row weights = sparq_row(place, candidates, place.head(i), row, channels);
      for (std::size_t j = 0; j < scores.size(); ++j) {
        scores[j] += weights[j];
      }
    }
  }
  return scores;
}

/// Eigenvectors of a symmetric matrix by cyclic Jacobi rotations, columns by falling eigenvalue.
inline Block eigenvectors(Block a) {
  const std::size_t n = a.size();
  Block v(n, Row(n, 0.0));
  for (std::size_t i = 0; i < n; ++i) {
    v[i][i] = 1;
  }
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a[p][q] == 0) {
          continue;
        }
        const double theta = 0.5 * std::atan2(2 * a[p][q], a[q][q] - a[p][p]);
        const double c = std::cos(theta);
        const double s = std::sin(theta);
        for (std::size_t i = 0; i < n; ++i) {
          const double ip = a[i][p];
          a[i][p] = c * ip - s * a[i][q];
          a[i][q] = s * ip + c * a[i][q];
          const double vp = v[i][p];
          v[i][p] = c * vp - s * v[i][q];
          v[i][q] = s * vp + c * v[i][q];
        }
        for (std::size_t i = 0; i < n; ++i) {
          const double pi = a[p][i];
          a[p][i] = c * pi - s * a[q][i];
          a[q][i] = s * pi + c * a[q][i];
        }
      }
    }
  }
  Row negated;
  for (std::size_t i = 0; i < n; ++i) {
    negated.push_back(-a[i][i]);
  }
  Block columns;
  for (const Index i : ascending_order(negated)) {
    Row column;
    for (std::size_t j = 0; j < n; ++j) {
      column.push_back(v[j][static_cast<std::size_t>(i)]);
    }
    columns.push_back(column);
  }
  return columns;
}

inline Row loki_scores(const Place& place, const Positions& candidates, Index n_components) {
  Block keys;
  for (const Index key : candidates) {
    keys.push_back(place.key(key));
  }
  const Row centre = mean(keys);
  Block covariance(centre.size(), Row(centre.size(), 0.0));
  for (const Row& key : keys) {
    for (std::size_t i = 0; i < centre.size(); ++i) {
      for (std::size_t j = 0; j < centre.size(); ++j) {
        covariance[i][j] += (key[i] - centre[i]) * (key[j] - centre[j]);
      }
    }
  }
  const Block components = eigenvectors(covariance);
  Block queries;
  for (Index i = 0; i < place.layer.group_size(); ++i) {
    for (Index row = place.rows.begin; row < place.rows.end; ++row) {
      queries.push_back(at(at(place.layer.q, place.head(i)), row));
    }
  }
  const Row query = mean(queries);
  Row scores;
  for (const Row& key : keys) {
    double score = 0;
    for (Index c = 0; c < n_components; ++c) {
      score += dot(at(components, c), query) * dot(at(components, c), key);
    }
    scores.push_back(score);
  }
  return scores;
}

/// Dense probability summed over all heads of the layer itself (source_layer is the layer at work).
inline Row less_is_more_scores(const Place& place, const Positions& candidates) {
  Row scores;
  for (const Index key : candidates) {
    double sum = 0;
    for (Index head = 0; head < place.layer.n_q_heads(); ++head) {
      for (Index row = place.rows.begin; row < place.rows.end; ++row) {
        sum += at(at(at(place.dense, head), row).p, key);
      }
    }
    scores.push_back(sum);
  }
  return scores;
}

/// Scores that are sums of probabilities have a relative error.
inline bool is_probability(SelectorKind selector) {
  return selector == SelectorKind::snapkv || selector == SelectorKind::sample_attention ||
         selector == SelectorKind::sparq || selector == SelectorKind::less_is_more;
}

/// Score per candidate of one of these methods; empty for random and sink_recent.
inline Row baseline_scores(const Place& place, const Positions& candidates,
                           const SelectorConfig& config, Gap& gap) {
  const Index head_dim = size(place.key(0));
  const Index n_channels = std::min(head_dim, requested_keys(config.n_channels, head_dim));
  switch (config.selector) {
    case SelectorKind::snapkv:
      return snapkv_scores(place, candidates, config);
    case SelectorKind::sample_attention:
      return sample_attention_scores(place, candidates, config);
    case SelectorKind::sparq:
      return sparq_scores(place, candidates, n_channels, gap);
    case SelectorKind::loki:
      return loki_scores(place, candidates, n_channels);
    case SelectorKind::less_is_more:
      return less_is_more_scores(place, candidates);
    default:
      return {};
  }
}

}  // namespace quoka::naive
