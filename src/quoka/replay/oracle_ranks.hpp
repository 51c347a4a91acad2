#pragma once

#include <vector>

#include "quoka/selection/chunk_context.hpp"
#include "quoka/selection/key_sequence.hpp"

namespace quoka {

/// The oracle's order of one (chunk, KV head): what any selection of the same size is measured
/// against.
class OracleRanks {
 public:
  /// Ranks the first `length` keys of the oracle among these candidates.
  OracleRanks(const ChunkContext& context, Candidates which, Index length);

  /// Pooled probability of the oracle's first n keys.
  [[nodiscard]] double mass(Index n) const { return mass_[n]; }

  /// Place of the key in the oracle's order; a large number beyond what was ranked.
  [[nodiscard]] std::int32_t rank(Index key_pos) const {
    return ranks_[static_cast<std::size_t>(key_pos - first_key_)];
  }

 private:
  Index first_key_;
  std::vector<std::int32_t> ranks_;  ///< per candidate; beyond `length` a large number
  VectorD mass_;                     ///< [length + 1]
};

}  // namespace quoka
