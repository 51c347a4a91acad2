#include "quoka/study/settings.hpp"

#include <algorithm>

#include "quoka/core/error.hpp"
#include "quoka/core/random.hpp"

namespace quoka {

SelectorConfig marked_selection(const StudySettings& settings, Index n_tokens) {
  const auto at_least = [](std::string_view name, Index value, Index least) {
    require<ConfigError>(value >= least, "{} {} is too small; use {} or more", name, value, least);
  };
  at_least("chunk_size", settings.chunk_size, 0);
  at_least("n_sel_queries", settings.n_sel_queries, 1);
  at_least("sink_size", settings.sink_size, 0);
  at_least("samples", settings.n_samples, 1);
  SelectorConfig config;
  config.chunk_size = settings.rows_per_chunk(n_tokens);
  config.candidates = settings.whole_prompt() ? Candidates::cache : Candidates::history;
  config.n_sel_queries = settings.n_sel_queries;
  config.budget = settings.budget;
  return config;
}

std::vector<Index> sample_positions(Index n, const StudySettings& settings, Index stream) {
  std::vector<std::pair<std::uint64_t, Index>> drawn;
  for (Index position = 0; position < n; ++position) {
    drawn.emplace_back(random_bits({.seed = settings.seed, .head = stream, .position = position}),
                       position);
  }
  const auto kept = std::min(n, settings.n_samples);
  std::ranges::partial_sort(drawn, drawn.begin() + kept);
  std::vector<Index> positions;
  for (Index i = 0; i < kept; ++i) {
    positions.push_back(drawn[static_cast<std::size_t>(i)].second);
  }
  std::ranges::sort(positions);
  return positions;
}

}  // namespace quoka
