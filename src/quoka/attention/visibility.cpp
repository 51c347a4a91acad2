#include "quoka/attention/visibility.hpp"

#include <algorithm>

namespace quoka {

IndexRange visible_keys(const AttentionRules& rules, Index query_pos) {
  IndexRange range{0, query_pos + 1};
  if (rules.sliding_window > 0) {
    range.begin = std::max(range.begin, query_pos + 1 - rules.sliding_window);
  }
  if (rules.attention_chunk > 0) {
    const Index chunk_begin = query_pos - query_pos % rules.attention_chunk;
    range.begin = std::max(range.begin, chunk_begin);
  }
  return range;
}

IndexRange rows_that_see(const AttentionRules& rules, IndexRange rows, Index key_pos) {
  Index end = rules.q_offset + rows.end;
  if (rules.sliding_window > 0) {
    end = std::min(end, key_pos + rules.sliding_window);
  }
  if (rules.attention_chunk > 0) {
    end = std::min(end, key_pos - key_pos % rules.attention_chunk + rules.attention_chunk);
  }
  const Index first_pos = rules.q_offset + rows.begin;
  const Index first = std::clamp<Index>(key_pos - first_pos, 0, rows.size());
  return {first, std::max(first, end - first_pos)};
}

}  // namespace quoka
