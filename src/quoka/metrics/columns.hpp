#pragma once

/// The list of everything that is measured, in one place: the replay fills these columns, the
/// results file makes one variable of each, the pages in docs/ describe them.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Changes whenever a definition below changes; cells of another version are never mixed or
/// compared.
constexpr int metric_version = 1;

/// Which way a metric improves.
enum class Better { higher, lower, neither };

/// Metrics with one value per row (query token) of an active chunk, reduced to statistics
/// afterwards.
enum class RowMetric {
  mass_recall,
  mass_recall_history,
  mass_recall_no_sink,
  kl,
  out_rel_l2,
  out_cos,
  out_max_abs,
};
constexpr Index n_row_metrics = 7;

/// Metrics with one value per (chunk, head), averaged over active chunks.
enum class ChunkMetric {
  oracle_ratio,
  topk_overlap,
  density_history,
  density,
  cut_margin,
  needle_key_recall,
  needle_mass_recall,
};
constexpr Index n_chunk_metrics = 7;

/// Statistics of a row metric over the active rows, in the order in which they are stored.
enum class RowStatistic { mean, p01, p05, p50, p95, p99, worst, n_valid };
constexpr Index n_row_statistics = 8;

/// Plain counts and values of a cell and head, in the order in which they are stored.
enum class CellCount {
  n_rows,
  n_rows_active,
  n_chunks_active,
  n_empty_rows,
  n_zero_queries,
  n_zero_keys,
  n_zero_means,
  n_candidates,
  keys_kept,
  sink_mass,
  floor_out_rel_l2,
};
constexpr Index n_cell_counts = 11;

/// What a results file says about one column.
struct ColumnInfo {
  std::string name;  ///< for example "out_rel_l2_p99"
  std::string long_name;
  std::string units;  ///< "1" for ratios and counts
  std::string formula;
  Better better = Better::neither;
};

Better better(RowMetric metric);

/// Columns of one (configuration, layer, query head): every row metric with its statistics, every
/// chunk metric with its n_valid, every count.
std::span<const ColumnInfo> cell_columns();

/// Columns of one (configuration, layer, query head, chunk): the means of the row metrics, the
/// chunk metrics, then n_candidates, keys_requested, keys_kept and state (0 active, 1 history
/// within budget, 2 history below min_history).
std::span<const ColumnInfo> chunk_columns();

Index cell_column(RowMetric metric, RowStatistic statistic);
Index cell_column(ChunkMetric metric);
Index cell_column_n_valid(ChunkMetric metric);
Index cell_column(CellCount count);

/// Position of a cell column by name, or -1.
Index find_cell_column(std::string_view name);

}  // namespace quoka
