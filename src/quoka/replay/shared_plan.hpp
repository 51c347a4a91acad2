#pragma once

/// Which configurations share which work. From outside in: the same chunks share the dense pass,
/// the same scores share one score vector, the same forced keys share one key order, and the
/// budgets are prefixes of that order.

#include <span>
#include <vector>

#include "quoka/selection/config.hpp"

namespace quoka {

/// Configurations that differ only in budget.
struct SharedSequence {
  SelectorConfig config;              ///< of any member; its budget means nothing here
  std::vector<Index> config_indices;  ///< into the list of configurations
};

/// Configurations with the same score vector.
struct SharedScores {
  SelectorConfig config;
  std::vector<SharedSequence> sequences;
};

/// Configurations that cut the prompt into the same chunks.
struct SharedChunking {
  Index chunk_size = 0;
  Index chunk_offset = 0;
  std::vector<SharedScores> scores;
  std::vector<Index> config_indices;  ///< all of them
};

std::vector<SharedChunking> share_work(std::span<const SelectorConfig> configs);

}  // namespace quoka
