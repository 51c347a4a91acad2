#pragma once

#include <vector>

#include "quoka/core/attention_rules.hpp"
#include "quoka/core/matrix.hpp"
#include "quoka/study/settings.hpp"

namespace quoka {

/// How one bound did. Slack is the bound minus the cosine that it bounds.
struct BoundSlack {
  double sum = 0;
  double smallest = 0;      ///< over all triples
  double applies_sum = 0;   ///< over triples that meet the theorem's precondition
  double n_violations = 0;  ///< slack below -theorem_tolerance
};

/// Rounding that a bound may be broken by: cosines are float64, and a root near 0 takes the square
/// root of their error.
constexpr double theorem_tolerance = 1e-6;

/// The paper's theorem on triples (mean query, query, key).
struct TheoremCheck {
  double n_triples = 0;
  double n_applies = 0;           ///< alpha < 0 and beta > 0
  double n_key_negative = 0;      ///< alpha < 0
  double applies_similarity = 0;  ///< sum of cos(query, mean query) where the theorem applies
  BoundSlack paper;
  BoundSlack spherical;
};

/// Checks theorem 1 on every sampled query with every sampled key that it sees.
///
/// The mean query is that of the query's chunk. Triples with a zero vector are left out. Samples
/// are ascending: rows of q, and absolute positions of keys. Float64 throughout.
/// Cost: O(query_samples * key_samples * head_dim).
TheoremCheck check_theorem(const ConstMatrixView& q, const ConstMatrixView& k,
                           const AttentionRules& rules, Index chunk_size,
                           const std::vector<Index>& query_samples,
                           const std::vector<Index>& key_samples);

}  // namespace quoka
