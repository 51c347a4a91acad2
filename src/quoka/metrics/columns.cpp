#include "quoka/metrics/columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace quoka {
namespace {

struct MetricText {
  std::string_view name;
  std::string_view long_name;
  std::string_view formula;
  Better better;
};

constexpr std::array<MetricText, n_row_metrics> row_metric_texts{{
    {"mass_recall", "attention mass kept",
     "sum of p over attended keys / sum of p over visible keys", Better::higher},
    {"mass_recall_history", "attention mass kept in the history",
     "sum of p over attended history keys / sum of p over visible history keys", Better::higher},
    {"mass_recall_no_sink", "attention mass kept in the history outside the sinks",
     "as mass_recall_history, without the first sink_size positions", Better::higher},
    {"kl", "divergence of sparse from dense attention",
     "-ln(sum of p over attended keys + probability of the sink logit)", Better::lower},
    {"out_rel_l2", "relative error of the attention output", "norm(o_sparse - o) / norm(o)",
     Better::lower},
    {"out_cos", "cosine of sparse and dense attention output",
     "o_sparse . o / (norm(o_sparse) norm(o))", Better::higher},
    {"out_max_abs", "largest absolute difference of the attention output",
     "max over channels of |o_sparse - o|", Better::lower},
}};

constexpr std::array<MetricText, n_chunk_metrics> chunk_metric_texts{{
    {"oracle_ratio", "pooled mass kept relative to the oracle's set of the same size",
     "P(kept candidates) / P(oracle's keys); P = p summed over rows of the chunk and heads of the "
     "group",
     Better::higher},
    {"topk_overlap", "share of the oracle's keys that were kept", "|kept and oracle| / |oracle|",
     Better::higher},
    {"density_history", "share of visible history pairs that were kept",
     "kept visible (row, history key) pairs / visible (row, history key) pairs", Better::neither},
    {"density", "share of visible pairs that were attended",
     "attended (row, key) pairs / visible (row, key) pairs", Better::neither},
    {"cut_margin", "score of the last kept key minus that of the first rejected one",
     "forced keys are left out", Better::neither},
    {"needle_key_recall", "share of the needle's keys that were kept",
     "kept positions of a span / its length, mean over (chunk, span)", Better::higher},
    {"needle_mass_recall", "share of the question rows' mass on the needle that was kept",
     "sum of p over kept positions of a span / sum of p over the span, mean over (row, span)",
     Better::higher},
}};

constexpr std::array<std::string_view, n_row_statistics> statistic_names{
    "mean", "p01", "p05", "p50", "p95", "p99", "worst", "n_valid"};
constexpr std::array<std::string_view, n_row_statistics> statistic_words{
    "mean over active rows", "1st percentile",  "5th percentile", "median",
    "95th percentile",       "99th percentile", "worst row",      "number of rows with a value"};

constexpr std::array<MetricText, n_cell_counts> count_texts{{
    {"n_rows", "rows of the layer", "", Better::neither},
    {"n_rows_active", "rows in active chunks",
     "active: more candidates than the budget, and at least min_history keys before the chunk",
     Better::neither},
    {"n_chunks_active", "active chunks", "", Better::neither},
    {"n_empty_rows", "active rows that attend no key", "only with candidates = cache",
     Better::neither},
    {"n_zero_queries", "query vectors of norm 0", "", Better::neither},
    {"n_zero_keys", "key vectors of norm 0", "", Better::neither},
    {"n_zero_means", "chunks whose mean query is 0", "", Better::neither},
    {"n_candidates", "candidate keys", "mean over active chunks", Better::neither},
    {"keys_kept", "kept keys", "mean over active chunks", Better::neither},
    {"sink_mass", "attention mass on the first sink_size positions",
     "p summed over the positions, mean over all rows", Better::neither},
    {"floor_out_rel_l2", "numeric floor of out_rel_l2",
     "norm(o_float32 - o_float64) / norm(o_float64) of dense attention, mean over 64 evenly spaced "
     "rows",
     Better::neither},
}};

ColumnInfo column(const MetricText& text, std::string_view suffix, std::string_view detail) {
  const std::string separator = suffix.empty() ? "" : "_";
  return {
      fmt::format("{}{}{}", text.name, separator, suffix),
      detail.empty() ? std::string(text.long_name) : fmt::format("{}, {}", text.long_name, detail),
      "1", std::string(text.formula), text.better};
}

std::vector<ColumnInfo> make_cell_columns() {
  std::vector<ColumnInfo> columns;
  for (const MetricText& text : row_metric_texts) {
    for (std::size_t s = 0; s < statistic_names.size(); ++s) {
      columns.push_back(column(text, statistic_names[s], statistic_words[s]));
    }
    columns.back().better = Better::neither;  // n_valid
  }
  for (const MetricText& text : chunk_metric_texts) {
    columns.push_back(column(text, "", ""));
    columns.push_back(column(text, "n_valid", "number of values in the mean"));
    columns.back().better = Better::neither;
  }
  for (const MetricText& text : count_texts) {
    columns.push_back(column(text, "", ""));
  }
  return columns;
}

std::vector<ColumnInfo> make_chunk_columns() {
  std::vector<ColumnInfo> columns;
  for (const MetricText& text : row_metric_texts) {
    columns.push_back(column(text, "mean", "mean over the chunk's rows"));
  }
  for (const MetricText& text : chunk_metric_texts) {
    columns.push_back(column(text, "", ""));
  }
  columns.push_back({"n_candidates", "candidate keys", "1", "", Better::neither});
  columns.push_back({"keys_requested", "budget in keys", "1", "", Better::neither});
  columns.push_back({"keys_kept", "kept keys", "1", "", Better::neither});
  columns.push_back(
      {"state", "why the chunk counts or not", "1",
       "0 active, 1 history within budget (dense-equivalent), 2 history below min_history",
       Better::neither});
  return columns;
}

}  // namespace

Better better(RowMetric metric) {
  return row_metric_texts[static_cast<std::size_t>(metric)].better;
}

std::span<const ColumnInfo> cell_columns() {
  static const std::vector<ColumnInfo> columns = make_cell_columns();
  return columns;
}

std::span<const ColumnInfo> chunk_columns() {
  static const std::vector<ColumnInfo> columns = make_chunk_columns();
  return columns;
}

Index cell_column(RowMetric metric, RowStatistic statistic) {
  return static_cast<Index>(metric) * n_row_statistics + static_cast<Index>(statistic);
}

Index cell_column(ChunkMetric metric) {
  return n_row_metrics * n_row_statistics + 2 * static_cast<Index>(metric);
}

Index cell_column_n_valid(ChunkMetric metric) { return cell_column(metric) + 1; }

Index cell_column(CellCount count) {
  return n_row_metrics * n_row_statistics + 2 * n_chunk_metrics + static_cast<Index>(count);
}

Index find_cell_column(std::string_view name) {
  const auto columns = cell_columns();
  const auto found = std::ranges::find(columns, name, &ColumnInfo::name);
  return found == columns.end() ? -1 : static_cast<Index>(found - columns.begin());
}

}  // namespace quoka
