#include "quoka/replay/chunk_plan.hpp"

#include <algorithm>

#include "quoka/attention/visibility.hpp"

namespace quoka {

std::vector<IndexRange> chunk_rows(Index n_tokens, Index chunk_size, Index chunk_offset) {
  std::vector<IndexRange> chunks;
  Index begin = 0;
  Index end = chunk_offset > 0 ? chunk_offset : chunk_size;
  while (begin < n_tokens) {
    chunks.push_back({begin, std::min(end, n_tokens)});
    begin = end;
    end += chunk_size;
  }
  return chunks;
}

ChunkFacts chunk_facts(const AttentionRules& rules, IndexRange rows, const SelectorConfig& config,
                       Index min_history) {
  const Index history_end = rules.q_offset + rows.begin;
  const Index candidates_end =
      config.candidates == Candidates::history ? history_end : rules.q_offset + rows.end;
  ChunkFacts facts;
  facts.n_candidates = candidates_end - visible_keys(rules, history_end).begin;
  facts.keys_requested = config.budget.keys(facts.n_candidates);
  if (facts.n_candidates <= facts.keys_requested) {
    facts.state = ChunkState::within_budget;
  } else if (history_end < min_history) {
    facts.state = ChunkState::below_min_history;
  }
  return facts;
}

std::vector<ChunkNeedles> chunk_needles(const AttentionRules& rules, IndexRange rows,
                                        const std::vector<NeedleGroup>& groups) {
  const Index chunk_begin = rules.q_offset + rows.begin;
  std::vector<ChunkNeedles> result;
  for (const NeedleGroup& group : groups) {
    ChunkNeedles needles;
    Index farthest_visible = chunk_begin;
    for (Index i = 0; i < rows.size(); ++i) {
      const Index position = chunk_begin + i;
      if (std::ranges::any_of(group.questions,
                              [&](IndexRange range) { return range.contains(position); })) {
        needles.rows.push_back(i);
        farthest_visible = std::min(farthest_visible, visible_keys(rules, position).begin);
      }
    }
    for (const IndexRange span : group.needles) {
      if (span.end <= chunk_begin && span.begin >= farthest_visible) {
        needles.spans.push_back(span);
      }
    }
    if (!needles.rows.empty() && !needles.spans.empty()) {
      result.push_back(std::move(needles));
    }
  }
  return result;
}

}  // namespace quoka
