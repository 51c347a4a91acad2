#include "quoka/prefill/query_slots.hpp"

#include <algorithm>
#include <numeric>

#include "quoka/geometry/mean_query.hpp"
#include "quoka/geometry/unit_rows.hpp"

namespace quoka {
namespace {

/// The n rows of one head by (cosine with the mean row, position); all, in position order, if there
/// are no more.
std::vector<Index> kept_rows(const ConstMatrixView& queries, Index n) {
  std::vector<Index> rows(static_cast<std::size_t>(queries.rows()));
  std::iota(rows.begin(), rows.end(), Index{0});
  if (n < queries.rows()) {
    const VectorD cosines = similarity_to_mean(queries, MeanOf::raw_rows).cosines;
    std::ranges::stable_sort(rows, {}, [&cosines](Index row) { return cosines[row]; });
    rows.resize(static_cast<std::size_t>(n));
  }
  return rows;
}

}  // namespace

Matrix query_slots(const GroupView& group, IndexRange rows, Index n_sel_queries) {
  Matrix sum = Matrix::Zero(std::min(rows.size(), n_sel_queries), group.k.cols());
  for (const ConstMatrixView& q : group.q) {
    const ConstMatrixView queries = row_view(q, rows);
    const Matrix kept = queries(kept_rows(queries, n_sel_queries), Eigen::all);
    sum += unit_rows(view(kept)).rows;
  }
  return sum / static_cast<float>(group.group_size());
}

}  // namespace quoka
