#include "quoka/replay/key_walk.hpp"

#include <algorithm>
#include <limits>

namespace quoka {
namespace {

std::vector<std::int32_t> places_of(const ChunkBase& base, const KeySequence& sequence) {
  std::vector<std::int32_t> places(static_cast<std::size_t>(base.context.dense.keys.size()),
                                   std::numeric_limits<std::int32_t>::max());
  for (std::size_t i = 0; i < sequence.keys.size(); ++i) {
    const Index offset = sequence.keys[i] - base.context.dense.keys.begin;
    places[static_cast<std::size_t>(offset)] = static_cast<std::int32_t>(i);
  }
  return places;
}

std::vector<Index> first_visible_places(const ChunkBase& base, const KeySequence& sequence) {
  std::vector<Index> first;
  for (const IndexRange visible : base.visible) {
    const auto found = std::ranges::find_if(
        sequence.keys, [visible](std::int32_t key) { return visible.contains(key); });
    first.push_back(found - sequence.keys.begin());
  }
  return first;
}

}  // namespace

std::vector<std::int32_t> KeyWalk::attended_keys(Index n_keys, Index token) const {
  const IndexRange visible = base.visible[static_cast<std::size_t>(token)];
  std::vector<std::int32_t> keys;
  for (Index i = 0; i < n_keys; ++i) {
    const std::int32_t key = sequence.keys[static_cast<std::size_t>(i)];
    if (visible.contains(key)) {
      keys.push_back(key);
    }
  }
  if (with_own_keys) {
    const Index begin = std::max(visible.begin, base.context.chunk_begin());
    for (Index key = begin; key < visible.end; ++key) {
      keys.push_back(static_cast<std::int32_t>(key));
    }
  }
  return keys;
}

KeyWalk key_walk(const ChunkBase& base, const AttentionRules& rules, const KeySequence& sequence,
                 Candidates candidates, const OracleRanks& oracle) {
  KeyWalk walk{.base = base,
               .rules = rules,
               .sequence = sequence,
               .oracle = oracle,
               .with_own_keys = candidates == Candidates::history,
               .pooled = {0.0},
               .pairs = {0},
               .history_pairs = {0},
               .ranks = {},
               .places = {},
               .first_visible = {}};
  const ChunkContext& context = base.context;
  for (const std::int32_t key : sequence.keys) {
    const Index offset = key - context.dense.keys.begin;
    const Index pairs = base.pairs[static_cast<std::size_t>(offset)];
    walk.pooled.push_back(walk.pooled.back() + context.dense.pooled[offset]);
    walk.pairs.push_back(walk.pairs.back() + pairs);
    walk.history_pairs.push_back(walk.history_pairs.back() +
                                 (key < context.chunk_begin() ? pairs : 0));
    walk.ranks.push_back(oracle.rank(key));
  }
  if (!base.needles.empty()) {
    walk.places = places_of(base, sequence);
  }
  if (!walk.with_own_keys) {
    walk.first_visible = first_visible_places(base, sequence);
  }
  return walk;
}

}  // namespace quoka
