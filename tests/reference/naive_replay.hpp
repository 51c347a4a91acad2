#pragma once

/// The slow reference, part 5: one layer under one configuration. Fills the same columns as the
/// engine, by name; floor_out_rel_l2 is not among them (it compares float32 with float64, here is
/// only float64).

#include "quoka/replay/replay.hpp"
#include "reference/naive_metrics.hpp"

namespace quoka::naive {

/// What the reference says about one configuration.
struct Cell {
  std::vector<std::map<std::string, double>> values;  ///< [n_q_heads], by column name
  std::vector<IndexRange> chunks;                     ///< absolute positions
  std::vector<Block> chunk_values;                    ///< [chunk][n_q_heads][chunk columns]
  std::vector<Kept> kept;                             ///< active chunks, by chunk then KV head
  Gap gap;                                            ///< how clear the decisions were
};

inline Block to_block(const Matrix& matrix) {
  Block block;
  for (Index i = 0; i < matrix.rows(); ++i) {
    block.emplace_back();
    for (Index j = 0; j < matrix.cols(); ++j) {
      block.back().push_back(static_cast<double>(matrix(i, j)));
    }
  }
  return block;
}

inline Layer to_layer(const LayerInput& input) {
  Layer layer;
  layer.rules = input.rules;
  layer.layer_idx = input.layer_idx;
  for (Index kv_head = 0; kv_head < input.shape.n_kv_heads; ++kv_head) {
    const HeadGroup group = input.load_group(kv_head);
    for (const Matrix& q : group.q) {
      layer.q.push_back(to_block(q));
    }
    layer.k.push_back(to_block(group.k));
    layer.v.push_back(to_block(group.v));
  }
  return layer;
}

/// State of a chunk: 0 active, 1 nothing to reject, 2 history below min_history.
inline int chunk_state(const Layer& layer, const Kept& kept, Index min_history) {
  if (kept.n_candidates <= kept.requested) {
    return 1;
  }
  return layer.position(kept.rows.begin) < min_history ? 2 : 0;
}

/// Everything collected for one query head over the chunks.
struct HeadRecord {
  std::vector<Row> row_values;  ///< [row metric][active row]
  std::vector<Row>
      chunk_values;  ///< [chunk metric][active chunk, or (chunk, span), or (row, span)]
  Row n_candidates;
  Row keys_kept;
  double n_rows_active = 0;
  double n_empty_rows = 0;
};

/// Measures one active chunk for one query head, adds it to the record, returns its chunk columns.
inline Row measure_chunk(const Place& place, const Kept& kept, Index head,
                         const std::vector<NeedleGroup>& needles, const ReplaySettings& settings,
                         Candidates candidates, HeadRecord& record) {
  const Layer& layer = place.layer;
  const Index begin = layer.position(place.rows.begin);
  std::vector<Row> rows(row_metric_names().size());
  for (Index row = place.rows.begin; row < place.rows.end; ++row) {
    record.n_rows_active += 1;
    const Positions attended = attended_keys(layer, kept, row, candidates);
    if (attended.empty()) {
      record.n_empty_rows += 1;
      continue;
    }
    const Row values =
        row_metrics(layer, at(at(place.dense, head), row), attend(layer, head, row, attended),
                    attended, row, begin, settings.sink_size);
    for (std::size_t m = 0; m < rows.size(); ++m) {
      rows[m].push_back(values[m]);
      record.row_values[m].push_back(values[m]);
    }
  }
  const NeedleValues needle = needle_values(place, kept, head, needles, candidates);
  const std::vector<Row> chunk = {{oracle_ratio(place, kept)},
                                  {topk_overlap(kept)},
                                  {density(layer, kept, begin, candidates)},
                                  {density(layer, kept, layer.n_keys(), candidates)},
                                  {kept.cut_margin},
                                  needle.key_recalls,
                                  needle.mass_recalls};
  Row columns;
  for (const Row& values : rows) {
    columns.push_back(mean_of_valid(values));
  }
  for (std::size_t m = 0; m < chunk.size(); ++m) {
    columns.push_back(mean_of_valid(chunk[m]));
    record.chunk_values[m].insert(record.chunk_values[m].end(), chunk[m].begin(), chunk[m].end());
  }
  record.n_candidates.push_back(static_cast<double>(kept.n_candidates));
  record.keys_kept.push_back(static_cast<double>(kept.keys.size()));
  return columns;
}

/// Chunk columns of an inactive chunk: no metrics, but where everything is kept the density is 1.
inline Row inactive_columns(int state) {
  Row columns(row_metric_names().size() + chunk_metric_names().size(), nan);
  const std::size_t density_column = row_metric_names().size() + 3;
  columns[density_column] = state == 1 ? 1 : nan;
  return columns;
}

inline double n_zero_rows(const Block& rows) {
  double n = 0;
  for (const Row& row : rows) {
    n += norm(row) == 0 ? 1 : 0;
  }
  return n;
}

/// Chunks that really sub-select by a mean query that is the zero vector.
inline double n_zero_means(const Layer& layer, Index head, const SelectorConfig& config) {
  const bool uses_mean =
      config.selector == SelectorKind::quoka && (config.query_rule == QueryRule::lowest_cosine ||
                                                 config.query_rule == QueryRule::highest_cosine ||
                                                 config.query_rule == QueryRule::farthest_point);
  double n = 0;
  for (const IndexRange& rows : chunk_rows(layer.n_tokens(), config)) {
    const bool sub_selects = rows.size() > config.n_sel_queries;
    if (uses_mean && sub_selects && norm(mean_query(layer, head, rows, config.query_mean)) == 0) {
      n += 1;
    }
  }
  return n;
}

inline double sink_mass(const Layer& layer, const Dense& dense, Index head, Index sink_size) {
  Row masses;
  for (Index row = 0; row < layer.n_tokens(); ++row) {
    masses.push_back(mass(at(at(dense, head), row).p, visible_keys(layer, row), 0, sink_size));
  }
  return mean_of_valid(masses);
}

/// The columns of one head from everything collected.
inline std::map<std::string, double> cell_columns_of(const Layer& layer, const Dense& dense,
                                                     Index head, const SelectorConfig& config,
                                                     Index sink_size, const HeadRecord& record) {
  std::map<std::string, double> columns;
  for (std::size_t m = 0; m < record.row_values.size(); ++m) {
    const auto& [name, higher_is_better] = row_metric_names()[m];
    add_statistics(columns, name, higher_is_better, record.row_values[m]);
  }
  for (std::size_t m = 0; m < record.chunk_values.size(); ++m) {
    const Row& values = record.chunk_values[m];
    columns[chunk_metric_names()[m]] = mean_of_valid(values);
    columns[chunk_metric_names()[m] + "_n_valid"] = static_cast<double>(
        std::count_if(values.begin(), values.end(), [](double x) { return !std::isnan(x); }));
  }
  columns["n_rows"] = static_cast<double>(layer.n_tokens());
  columns["n_rows_active"] = record.n_rows_active;
  columns["n_chunks_active"] = static_cast<double>(record.keys_kept.size());
  columns["n_empty_rows"] = record.n_empty_rows;
  columns["n_zero_queries"] = n_zero_rows(at(layer.q, head));
  columns["n_zero_keys"] = n_zero_rows(at(layer.k, layer.kv_head_of(head)));
  columns["n_zero_means"] = n_zero_means(layer, head, config);
  columns["n_candidates"] = mean_of_valid(record.n_candidates);
  columns["keys_kept"] = mean_of_valid(record.keys_kept);
  columns["sink_mass"] = sink_mass(layer, dense, head, sink_size);
  return columns;
}

inline Cell replay(const Layer& layer, const Dense& dense, const std::vector<NeedleGroup>& needles,
                   const SelectorConfig& config, const ReplaySettings& settings) {
  Cell cell;
  HeadRecord empty;
  empty.row_values.resize(row_metric_names().size());
  empty.chunk_values.resize(chunk_metric_names().size());
  std::vector<HeadRecord> records(static_cast<std::size_t>(layer.n_q_heads()), empty);

  for (const IndexRange& rows : chunk_rows(layer.n_tokens(), config)) {
    cell.chunks.push_back({layer.position(rows.begin), layer.position(rows.end)});
    cell.chunk_values.emplace_back();
    for (Index kv_head = 0; kv_head < layer.n_kv_heads(); ++kv_head) {
      const Place place{layer, dense, rows, kv_head};
      Gap gap;
      const Kept kept = select_keys(place, config, gap);
      const int state = chunk_state(layer, kept, settings.min_history);
      for (Index i = 0; i < layer.group_size(); ++i) {
        const Index head = place.head(i);
        Row columns = state == 0 ? measure_chunk(place, kept, head, needles, settings,
                                                 config.candidates, at(records, head))
                                 : inactive_columns(state);
        columns.insert(columns.end(),
                       {static_cast<double>(kept.n_candidates), static_cast<double>(kept.requested),
                        static_cast<double>(kept.keys.size()), double(state)});
        cell.chunk_values.back().push_back(columns);
      }
      if (state == 0) {
        cell.kept.push_back(kept);
        cell.gap.smallest = std::min(cell.gap.smallest, gap.smallest);
      }
    }
  }
  for (Index head = 0; head < layer.n_q_heads(); ++head) {
    cell.values.push_back(
        cell_columns_of(layer, dense, head, config, settings.sink_size, at(records, head)));
  }
  return cell;
}

}  // namespace quoka::naive
