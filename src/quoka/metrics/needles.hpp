#pragma once

#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// One question of the prompt and the planted spans that answer it; absolute positions.
struct NeedleGroup {
  std::vector<IndexRange> questions = {};  ///< token ranges of the question
  std::vector<IndexRange> needles = {};    ///< token ranges of its needles
};

}  // namespace quoka
