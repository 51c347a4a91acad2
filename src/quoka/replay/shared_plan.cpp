#include "quoka/replay/shared_plan.hpp"

#include <algorithm>

#include "quoka/selection/parameters.hpp"

namespace quoka {
namespace {

/// The configuration as far as its key order goes.
SelectorConfig without_budget(SelectorConfig config) {
  config.budget = SelectorConfig{}.budget;
  return canonical(config);
}

/// The configuration as far as its scores go. Forced keys are put before the scores later; for
/// sink_recent they are the whole order.
SelectorConfig scores_only(const SelectorConfig& config) {
  SelectorConfig result = without_budget(config);
  if (config.selector != SelectorKind::sink_recent) {
    result.keep_first = 0;
    result.keep_recent = 0;
  }
  return result;
}

/// The entry for which `matches` holds, added at the end if there is none yet.
template <typename Entry, typename Matches>
Entry& find_or_add(std::vector<Entry>& entries, const Matches& matches, Entry fresh) {
  const auto found = std::ranges::find_if(entries, matches);
  return found != entries.end() ? *found : entries.emplace_back(std::move(fresh));
}

}  // namespace

std::vector<SharedChunking> share_work(std::span<const SelectorConfig> configs) {
  std::vector<SharedChunking> plan;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const SelectorConfig& config = configs[i];
    const auto index = static_cast<Index>(i);
    SharedChunking& chunking = find_or_add(plan,
                                           [&](const SharedChunking& other) {
                                             return other.chunk_size == config.chunk_size &&
                                                    other.chunk_offset == config.chunk_offset;
                                           },
                                           {.chunk_size = config.chunk_size,
                                            .chunk_offset = config.chunk_offset,
                                            .scores = {},
                                            .config_indices = {}});
    chunking.config_indices.push_back(index);

    const SelectorConfig score_config = scores_only(config);
    SharedScores& scores = find_or_add(
        chunking.scores, [&](const SharedScores& other) { return other.config == score_config; },
        {.config = score_config, .sequences = {}});

    const SelectorConfig sequence_config = without_budget(config);
    SharedSequence& sequence =
        find_or_add(scores.sequences,
                    [&](const SharedSequence& other) { return other.config == sequence_config; },
                    {.config = sequence_config, .config_indices = {}});
    sequence.config_indices.push_back(index);
  }
  return plan;
}

}  // namespace quoka
