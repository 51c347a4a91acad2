#pragma once

#include <vector>

#include "quoka/replay/cell_store.hpp"
#include "quoka/replay/chunk_base.hpp"
#include "quoka/replay/oracle_ranks.hpp"

namespace quoka {

/// One configuration that keeps a prefix of a key order.
struct SequenceMember {
  CellStore* cell = nullptr;
  Index n_keys = 0;  ///< keys kept: the length of the prefix, below the number of candidates
};

/// Measures every member on one (chunk, KV head): attends to its prefix, fills its row metrics and
/// its chunk record.
///
/// Shapes: members ascending in n_keys, all with the sequence's `candidates`.
/// Cost: that of the longest prefix, plus O(rows * v_head_dim) per member.
void measure_sequence(const ChunkBase& base, const AttentionRules& rules,
                      const KeySequence& sequence, Candidates candidates, const OracleRanks& oracle,
                      Index chunk, std::vector<SequenceMember> members);

/// Score of the last key kept by score and its distance to the first rejected one; NaN without.
struct CutOff {
  double score = 0;
  double margin = 0;
};
CutOff cut_off(const KeySequence& sequence, Index n_keys);

}  // namespace quoka
