#include "quoka/selection/key_sequence.hpp"

#include <algorithm>
#include <limits>

#include "quoka/core/random.hpp"
#include "quoka/selection/top_k.hpp"

namespace quoka {
namespace {

/// Forced keys in the order in which they claim the budget; the rest of the candidates is [rest).
struct Forced {
  std::vector<std::int32_t> keys;
  IndexRange rest;
};

Forced forced_keys(IndexRange candidates, Index keep_first, Index keep_recent) {
  Forced forced{{}, candidates};
  const Index n_first = std::min(keep_first, candidates.size());
  for (Index i = 0; i < n_first; ++i) {
    forced.keys.push_back(static_cast<std::int32_t>(forced.rest.begin++));
  }
  const Index n_recent = std::min(keep_recent, forced.rest.size());
  for (Index i = 0; i < n_recent; ++i) {
    forced.keys.push_back(static_cast<std::int32_t>(--forced.rest.end));
  }
  return forced;
}

/// Sort keys of the candidates in `rest`: the smallest is taken first.
std::vector<Ranked> ranked_rest(const ChunkContext& context, const SelectorConfig& config,
                                const VectorD& scores, IndexRange rest) {
  const Index first_candidate = context.candidates(config.candidates).begin;
  std::vector<Ranked> ranked;
  ranked.reserve(static_cast<std::size_t>(rest.size()));
  for (Index key = rest.begin; key < rest.end; ++key) {
    const std::uint64_t order =
        scores.size() > 0 ? descending_order(scores[key - first_candidate])
                          : random_bits({config.seed, context.layer_idx, context.chunk_begin(),
                                         context.group.kv_head, key});
    ranked.push_back({order, static_cast<std::int32_t>(key)});
  }
  return ranked;
}

}  // namespace

KeySequence key_sequence(const ChunkContext& context, const SelectorConfig& config,
                         const VectorD& scores, Index length) {
  const IndexRange candidates = context.candidates(config.candidates);
  const bool is_sink_recent = config.selector == SelectorKind::sink_recent;
  const Index keep_recent = is_sink_recent ? candidates.size() : config.keep_recent;
  const Index keep_first = config.selector == SelectorKind::oracle ? 0 : config.keep_first;
  Forced forced = forced_keys(candidates, keep_first,
                              config.selector == SelectorKind::oracle ? 0 : keep_recent);

  KeySequence sequence{.keys = std::move(forced.keys),
                       .scores = {},
                       .n_candidates = candidates.size(),
                       .n_forced = 0};
  sequence.n_forced = static_cast<Index>(sequence.keys.size());
  const Index n_rest = std::min(length, candidates.size()) - sequence.n_forced;
  if (n_rest > 0) {
    for (const Ranked& ranked :
         smallest_in_order(ranked_rest(context, config, scores, forced.rest), n_rest)) {
      sequence.keys.push_back(ranked.index);
    }
  }
  sequence.keys.resize(static_cast<std::size_t>(std::min(length, candidates.size())));
  if (scores.size() > 0) {
    for (std::size_t i = 0; i < sequence.keys.size(); ++i) {
      const bool is_forced = static_cast<Index>(i) < sequence.n_forced;
      sequence.scores.push_back(is_forced ? std::numeric_limits<double>::quiet_NaN()
                                          : scores[sequence.keys[i] - candidates.begin]);
    }
  }
  return sequence;
}

}  // namespace quoka
