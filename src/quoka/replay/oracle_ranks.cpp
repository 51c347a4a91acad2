#include "quoka/replay/oracle_ranks.hpp"

#include <limits>

#include "quoka/selection/score.hpp"

namespace quoka {

OracleRanks::OracleRanks(const ChunkContext& context, Candidates which, Index length)
    : first_key_(context.candidates(which).begin),
      ranks_(static_cast<std::size_t>(context.candidates(which).size()),
             std::numeric_limits<std::int32_t>::max()) {
  SelectorConfig oracle;
  oracle.selector = SelectorKind::oracle;
  oracle.candidates = which;
  const KeySequence sequence =
      key_sequence(context, oracle, score_candidates(context, oracle), length);
  mass_ = VectorD::Zero(static_cast<Index>(sequence.keys.size()) + 1);
  for (std::size_t rank = 0; rank < sequence.keys.size(); ++rank) {
    const Index offset = sequence.keys[rank] - first_key_;
    ranks_[static_cast<std::size_t>(offset)] = static_cast<std::int32_t>(rank);
    const auto place = static_cast<Index>(rank);
    mass_[place + 1] = mass_[place] + context.dense.pooled[offset];
  }
}

}  // namespace quoka
