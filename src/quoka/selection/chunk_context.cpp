#include "quoka/selection/chunk_context.hpp"

namespace quoka {

std::vector<HeadQueries> measure_queries(const GroupView& group, IndexRange rows) {
  std::vector<HeadQueries> result;
  for (const ConstMatrixView& q : group.q) {
    const ConstMatrixView raw = row_view(q, rows);
    result.push_back({.unit = unit_rows(raw),
                      .to_raw_mean = similarity_to_mean(raw, MeanOf::raw_rows),
                      .to_normalized_mean = similarity_to_mean(raw, MeanOf::unit_rows)});
  }
  return result;
}

}  // namespace quoka
