#pragma once

#include <array>
#include <optional>
#include <vector>

#include "quoka/metrics/columns.hpp"
#include "quoka/replay/chunk_plan.hpp"
#include "quoka/replay/replay.hpp"

namespace quoka {

/// A mean under construction.
struct MeanSum {
  double sum = 0;
  Index count = 0;

  void add(double value) {
    sum += value;
    ++count;
  }
  [[nodiscard]] float mean() const;  ///< NaN without values
};

/// What was measured for one configuration in one (chunk, query head).
struct ChunkRecord {
  std::array<MeanSum, n_chunk_metrics> metrics;
  Index n_empty_rows = 0;
  bool zero_mean = false;

  MeanSum& operator[](ChunkMetric metric) { return metrics[static_cast<std::size_t>(metric)]; }
};

/// Measurements of one configuration while one KV head's group is replayed. Chunks may be filled by
/// different threads: each has its own rows and record.
class CellStore {
 public:
  CellStore(const SelectorConfig& config, const AttentionRules& rules,
            const std::vector<IndexRange>& chunks, Index group_size, Index min_history);

  [[nodiscard]] const ChunkFacts& facts(Index chunk) const {
    return facts_[static_cast<std::size_t>(chunk)];
  }
  [[nodiscard]] bool is_active(Index chunk) const {
    return facts(chunk).state == ChunkState::active;
  }

  /// The row metrics of an active chunk's rows: [n_row_metrics, n_rows of the chunk]. They hold
  /// anything until they are set.
  Eigen::Block<Matrix> rows(Index chunk, Index head);
  ChunkRecord& record(Index chunk, Index head);

  /// Reduces one head to its columns (cell_columns); sink mass and floor are not known here.
  [[nodiscard]] Eigen::RowVectorXf cell_values(Index head) const;

  /// Columns of one head and chunk (chunk_columns).
  [[nodiscard]] Eigen::RowVectorXf chunk_values(Index chunk, Index head) const;

 private:
  [[nodiscard]] const ChunkRecord& record_of(Index chunk, Index head) const;

  std::vector<IndexRange> chunks_;
  std::vector<ChunkFacts> facts_;
  std::vector<Index> first_row_;      ///< per chunk: where its rows begin among the active rows
  std::vector<Matrix> row_values_;    ///< per head [n_row_metrics, n_active_rows]
  std::vector<ChunkRecord> records_;  ///< [chunk, head]
  Index group_size_;
};

}  // namespace quoka
