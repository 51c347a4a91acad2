#include "quoka/selection/chunk_context.hpp"

namespace quoka {

std::vector<HeadQueries> measure_queries(const GroupView& group, IndexRange rows) {
  std::vector<HeadQueries> result;
  for (const ConstMatrixView& q : group.q) {
    const ConstMatrixView raw = row_view(q, rows);
    HeadQueries head{.unit = unit_rows(raw),
                     .to_raw_mean = similarity_to_mean(raw, raw),
                     .to_normalized_mean = {}};
    head.to_normalized_mean = similarity_to_mean(raw, view(head.unit.rows));
    result.push_back(std::move(head));
  }
  return result;
}

}  // namespace quoka
