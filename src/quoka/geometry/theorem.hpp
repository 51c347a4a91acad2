#pragma once

namespace quoka {

/// Cosines between a query, a key and the mean query of the query's head.
struct TheoremAngles {
  double mean_key = 0;    ///< alpha = cos(mean query, key)
  double query_key = 0;   ///< beta = cos(query, key)
  double query_mean = 0;  ///< cos(query, mean query): what the bounds bound
};

/// Whether the paper's theorem speaks of this triple: alpha < 0 and beta > 0. Its bound holds
/// without; the signs only make it sharp.
/// Source: QUOKA (arXiv 2602.08722), theorem 1.
bool theorem_applies(const TheoremAngles& angles);

/// The paper's upper bound of cos(query, mean query):
/// 1 + alpha beta - alpha^2 / 2 - beta^2 / 2 = 1 - (alpha - beta)^2 / 2.
/// Source: QUOKA (arXiv 2602.08722), theorem 1.
double paper_bound(const TheoremAngles& angles);

/// The tightest bound that alpha and beta allow, the triangle inequality on the sphere:
/// alpha beta + sqrt((1 - alpha^2)(1 - beta^2)). Never above the paper's bound, since the geometric
/// mean of 1 - alpha^2 and 1 - beta^2 is not above their arithmetic mean.
/// Edge cases: a cosine that rounding left beyond 1 counts as 1 under the root.
double spherical_bound(const TheoremAngles& angles);

}  // namespace quoka
