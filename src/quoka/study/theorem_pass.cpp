#include "quoka/study/theorem_pass.hpp"

#include <algorithm>
#include <limits>

#include "quoka/attention/visibility.hpp"
#include "quoka/geometry/theorem.hpp"

namespace quoka {
namespace {

/// Rows at these indices divided by their norms, in float64; a zero row stays zero.
MatrixD unit_rows_at(const ConstMatrixView& block, const std::vector<Index>& rows) {
  MatrixD result = block(rows, Eigen::all).cast<double>();
  for (Index i = 0; i < result.rows(); ++i) {
    const double norm = result.row(i).norm();
    if (norm > 0) {
      result.row(i) /= norm;
    }
  }
  return result;
}

void add_slack(double slack, bool applies, BoundSlack& to) {
  to.sum += slack;
  to.smallest = std::min(to.smallest, slack);
  to.applies_sum += applies ? slack : 0;
  to.n_violations += slack < -theorem_tolerance ? 1 : 0;
}

void add_triple(const TheoremAngles& angles, TheoremCheck& check) {
  const bool applies = theorem_applies(angles);
  check.n_triples += 1;
  check.n_applies += applies ? 1 : 0;
  check.n_key_negative += angles.mean_key < 0 ? 1 : 0;
  check.applies_similarity += applies ? angles.query_mean : 0;
  add_slack(paper_bound(angles) - angles.query_mean, applies, check.paper);
  add_slack(spherical_bound(angles) - angles.query_mean, applies, check.spherical);
}

}  // namespace

TheoremCheck check_theorem(const ConstMatrixView& q, const ConstMatrixView& k,
                           const AttentionRules& rules, Index chunk_size,
                           const std::vector<Index>& query_samples,
                           const std::vector<Index>& key_samples) {
  const MatrixD queries = unit_rows_at(q, query_samples);
  const MatrixD keys = unit_rows_at(k, key_samples);
  TheoremCheck check;
  check.paper.smallest = check.spherical.smallest = std::numeric_limits<double>::infinity();
  Index chunk = -1;
  VectorD mean;
  VectorD mean_keys;  // alpha of every sampled key
  for (Index i = 0; i < queries.rows(); ++i) {
    const Index row = query_samples[static_cast<std::size_t>(i)];
    if (row / chunk_size != chunk) {
      chunk = row / chunk_size;
      const Index begin = chunk * chunk_size;
      const IndexRange rows{begin, std::min(begin + chunk_size, q.rows())};
      mean = row_view(q, rows).cast<double>().colwise().sum().transpose();
      mean.normalize();  // a zero mean stays zero
      mean_keys = keys * mean;
    }
    if (mean.isZero(0) || queries.row(i).isZero(0)) {
      continue;
    }
    const double similarity = queries.row(i).dot(mean);
    const VectorD query_keys = keys * queries.row(i).transpose();
    const IndexRange visible = visible_keys(rules, rules.q_offset + row);
    const auto first = std::ranges::lower_bound(key_samples, visible.begin) - key_samples.begin();
    const auto last = std::ranges::lower_bound(key_samples, visible.end) - key_samples.begin();
    for (Index j = first; j < last; ++j) {
      if (!keys.row(j).isZero(0)) {
        add_triple({mean_keys[j], query_keys[j], similarity}, check);
      }
    }
  }
  return check;
}

}  // namespace quoka
