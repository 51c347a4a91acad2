#include "quoka/replay/cell_store.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quoka/metrics/row_statistics.hpp"

namespace quoka {
namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

}  // namespace

float MeanSum::mean() const {
  return count == 0 ? nan_value : static_cast<float>(sum / static_cast<double>(count));
}

CellStore::CellStore(const SelectorConfig& config, const AttentionRules& rules,
                     const std::vector<IndexRange>& chunks, Index group_size, Index min_history)
    : chunks_(chunks),
      records_(chunks.size() * static_cast<std::size_t>(group_size)),
      group_size_(group_size) {
  Index n_active_rows = 0;
  for (const IndexRange rows : chunks) {
    facts_.push_back(chunk_facts(rules, rows, config, min_history));
    first_row_.push_back(n_active_rows);
    n_active_rows += facts_.back().state == ChunkState::active ? rows.size() : 0;
  }
  for (Index head = 0; head < group_size; ++head) {
    row_values_.emplace_back(Matrix(n_row_metrics, n_active_rows));
  }
}

Eigen::Block<Matrix> CellStore::rows(Index chunk, Index head) {
  const auto c = static_cast<std::size_t>(chunk);
  return row_values_[static_cast<std::size_t>(head)].middleCols(first_row_[c], chunks_[c].size());
}

ChunkRecord& CellStore::record(Index chunk, Index head) {
  return records_[static_cast<std::size_t>(chunk * group_size_ + head)];
}

const ChunkRecord& CellStore::record_of(Index chunk, Index head) const {
  return records_[static_cast<std::size_t>(chunk * group_size_ + head)];
}

Eigen::RowVectorXf CellStore::cell_values(Index head) const {
  Eigen::RowVectorXf values =
      Eigen::RowVectorXf::Constant(static_cast<Index>(cell_columns().size()), nan_value);
  const Matrix& rows = row_values_[static_cast<std::size_t>(head)];
  for (Index m = 0; m < n_row_metrics; ++m) {
    const auto metric = static_cast<RowMetric>(m);
    const auto statistics = row_statistics(
        {rows.data() + m * rows.cols(), static_cast<std::size_t>(rows.cols())}, better(metric));
    std::ranges::copy(statistics, values.begin() + cell_column(metric, RowStatistic::mean));
  }

  std::array<MeanSum, n_chunk_metrics> totals;
  MeanSum n_candidates;
  MeanSum keys_kept;
  Index n_empty_rows = 0;
  Index n_zero_means = 0;
  Index n_rows = 0;
  for (Index chunk = 0; chunk < static_cast<Index>(chunks_.size()); ++chunk) {
    const ChunkRecord& record = record_of(chunk, head);
    n_rows += chunks_[static_cast<std::size_t>(chunk)].size();
    n_zero_means += record.zero_mean ? 1 : 0;
    if (!is_active(chunk)) {
      continue;
    }
    n_empty_rows += record.n_empty_rows;
    n_candidates.add(static_cast<double>(facts(chunk).n_candidates));
    keys_kept.add(static_cast<double>(facts(chunk).keys_kept()));
    for (std::size_t m = 0; m < totals.size(); ++m) {
      totals[m].sum += record.metrics[m].sum;
      totals[m].count += record.metrics[m].count;
    }
  }
  for (Index m = 0; m < n_chunk_metrics; ++m) {
    const auto metric = static_cast<ChunkMetric>(m);
    const MeanSum& total = totals[static_cast<std::size_t>(m)];
    values[cell_column(metric)] = total.mean();
    values[cell_column_n_valid(metric)] = static_cast<float>(total.count);
  }
  values[cell_column(CellCount::n_rows)] = static_cast<float>(n_rows);
  values[cell_column(CellCount::n_rows_active)] = static_cast<float>(rows.cols());
  values[cell_column(CellCount::n_chunks_active)] = static_cast<float>(keys_kept.count);
  values[cell_column(CellCount::n_empty_rows)] = static_cast<float>(n_empty_rows);
  values[cell_column(CellCount::n_zero_means)] = static_cast<float>(n_zero_means);
  values[cell_column(CellCount::n_candidates)] = n_candidates.mean();
  values[cell_column(CellCount::keys_kept)] = keys_kept.mean();
  return values;
}

Eigen::RowVectorXf CellStore::chunk_values(Index chunk, Index head) const {
  const auto n_columns = static_cast<Index>(chunk_columns().size());
  Eigen::RowVectorXf values = Eigen::RowVectorXf::Constant(n_columns, nan_value);
  const ChunkFacts& known = facts(chunk);
  if (is_active(chunk)) {
    const auto c = static_cast<std::size_t>(chunk);
    const auto rows =
        row_values_[static_cast<std::size_t>(head)].middleCols(first_row_[c], chunks_[c].size());
    for (Index m = 0; m < n_row_metrics; ++m) {
      MeanSum mean;
      for (Index i = 0; i < rows.cols(); ++i) {
        if (!std::isnan(rows(m, i))) {
          mean.add(static_cast<double>(rows(m, i)));
        }
      }
      values[m] = mean.mean();
    }
    for (Index m = 0; m < n_chunk_metrics; ++m) {
      values[n_row_metrics + m] =
          record_of(chunk, head).metrics[static_cast<std::size_t>(m)].mean();
    }
  } else if (known.state == ChunkState::within_budget) {
    values[n_row_metrics + static_cast<Index>(ChunkMetric::density)] = 1.0F;
  }
  values[n_columns - 4] = static_cast<float>(known.n_candidates);
  values[n_columns - 3] = static_cast<float>(known.keys_requested);
  values[n_columns - 2] = static_cast<float>(known.keys_kept());
  values[n_columns - 1] = static_cast<float>(known.state);
  return values;
}

}  // namespace quoka
