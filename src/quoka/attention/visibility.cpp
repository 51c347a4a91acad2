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

}  // namespace quoka
