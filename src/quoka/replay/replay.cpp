#include "quoka/replay/replay.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "quoka/core/error.hpp"
#include "quoka/core/parallel.hpp"
#include "quoka/replay/replay_chunk.hpp"
#include "quoka/replay/source_scores.hpp"
#include "quoka/selection/parameters.hpp"

namespace quoka {
namespace {

/// Share of the work that is done, told to the caller one thread at a time.
class ProgressCounter {
 public:
  ProgressCounter(const ReplayProgress& callback, double total)
      : callback_(callback), total_(total) {}

  void add(double work) {
    const std::lock_guard lock(mutex_);
    done_ += work;
    if (callback_) {
      callback_(done_ / total_);
    }
  }

 private:
  const ReplayProgress& callback_;
  double total_;
  double done_ = 0;
  std::mutex mutex_;
};

double chunk_work(const AttentionRules& rules, IndexRange rows) {
  return static_cast<double>(rows.size()) * static_cast<double>(rules.q_offset + rows.end);
}

void check_group(const LayerInput& layer, const GroupView& group) {
  const AttentionShape& shape = layer.shape;
  const auto same = [](const ConstMatrixView& m, Index rows, Index cols) {
    return m.rows() == rows && m.cols() == cols;
  };
  bool fits = group.group_size() == shape.group_size() &&
              same(group.k, shape.n_keys, shape.k_head_dim) &&
              same(group.v, shape.n_keys, shape.v_head_dim);
  for (const ConstMatrixView& q : group.q) {
    fits = fits && same(q, shape.n_tokens, shape.k_head_dim);
  }
  require<ShapeError>(fits, "tensors of KV head {} do not have the shapes of layer {}",
                      group.kv_head, layer.layer_idx);
}

/// Replays every chunk of every chunking for one KV head.
std::vector<DenseStore> replay_group(const GroupReplay& replay,
                                     const std::vector<SharedChunking>& plan,
                                     const std::vector<SourceScores>& sources,
                                     ProgressCounter& progress) {
  std::vector<DenseStore> dense_stores;
  for (std::size_t p = 0; p < plan.size(); ++p) {
    const SharedChunking& chunking = plan[p];
    const std::vector<IndexRange> chunks =
        chunk_rows(replay.layer.shape.n_tokens, chunking.chunk_size, chunking.chunk_offset);
    const auto n_chunks = static_cast<Index>(chunks.size());
    DenseStore& store = dense_stores.emplace_back();
    store.sink_mass = MatrixD::Zero(n_chunks, replay.group.group_size());
    store.floor_errors = MatrixD::Zero(n_floor_rows, replay.group.group_size());
    // The longest history first: the cheap chunks fill the gaps at the end.
    parallel_for(n_chunks, replay.settings.n_threads, [&](Index item, int) {
      const Index chunk = n_chunks - 1 - item;
      const IndexRange rows = chunks[static_cast<std::size_t>(chunk)];
      replay_chunk(replay, chunking, {rows, chunk, &sources[p][static_cast<std::size_t>(chunk)]},
                   store);
      progress.add(chunk_work(replay.layer.rules, rows));
    });
  }
  return dense_stores;
}

float floor_of(const DenseStore& store, Index head) {
  MeanSum mean;
  for (Index i = 0; i < n_floor_rows; ++i) {
    if (!std::isnan(store.floor_errors(i, head))) {
      mean.add(store.floor_errors(i, head));
    }
  }
  return mean.mean();
}

/// Writes the columns of the group's heads into the results of one configuration.
void store_cell(const GroupReplay& replay, std::size_t config, const DenseStore& dense,
                CellResult& result) {
  const CellStore& cell = replay.cells[config];
  const auto set = [&result](Index q_head, CellCount column, double value) {
    result.values(q_head, cell_column(column)) = static_cast<float>(value);
  };
  const auto n_tokens = static_cast<double>(replay.layer.shape.n_tokens);
  for (Index head = 0; head < replay.group.group_size(); ++head) {
    const Index q_head = replay.group.q_head(head);
    result.values.row(q_head) = cell.cell_values(head);
    set(q_head, CellCount::n_zero_queries,
        static_cast<double>(replay.n_zero_queries[static_cast<std::size_t>(head)]));
    set(q_head, CellCount::n_zero_keys, static_cast<double>(replay.n_zero_keys));
    set(q_head, CellCount::sink_mass, dense.sink_mass.col(head).sum() / n_tokens);
    result.values(q_head, cell_column(CellCount::floor_out_rel_l2)) = floor_of(dense, head);
    for (std::size_t chunk = 0; chunk < result.chunk_values.size(); ++chunk) {
      result.chunk_values[chunk].row(q_head) = cell.chunk_values(static_cast<Index>(chunk), head);
    }
  }
}

/// Results with their final sizes, and nothing measured yet.
std::vector<CellResult> empty_results(const LayerInput& layer,
                                      std::span<const SelectorConfig> configs,
                                      const ReplaySettings& settings) {
  std::vector<CellResult> results(configs.size());
  for (std::size_t c = 0; c < configs.size(); ++c) {
    results[c].values.resize(layer.shape.n_q_heads, static_cast<Index>(cell_columns().size()));
    if (settings.by_chunk) {
      for (const IndexRange rows :
           chunk_rows(layer.shape.n_tokens, configs[c].chunk_size, configs[c].chunk_offset)) {
        results[c].chunks.push_back(
            {layer.rules.q_offset + rows.begin, layer.rules.q_offset + rows.end});
        results[c].chunk_values.emplace_back(layer.shape.n_q_heads,
                                             static_cast<Index>(chunk_columns().size()));
      }
    }
  }
  return results;
}

void append_kept(std::vector<std::vector<KeptKeys>>& kept, std::vector<CellResult>& results) {
  for (std::size_t c = 0; c < results.size(); ++c) {
    for (KeptKeys& keys : kept[c]) {
      if (!keys.key_indices.empty()) {
        results[c].kept.push_back(std::move(keys));
      }
    }
  }
}

}  // namespace

GroupView group_view(const HeadGroup& tensors, Index kv_head) {
  GroupView group{.q = {}, .k = view(tensors.k), .v = view(tensors.v), .kv_head = kv_head};
  for (const Matrix& q : tensors.q) {
    group.q.push_back(view(q));
  }
  return group;
}

std::vector<CellResult> replay_layer(const LayerInput& layer,
                                     std::span<const SelectorConfig> configs,
                                     const ReplaySettings& settings,
                                     const ReplayProgress& progress) {
  for (const SelectorConfig& config : configs) {
    check_consistent(config);
  }
  double total_work = 0;
  const std::vector<SharedChunking> plan = share_work(configs);
  for (const SharedChunking& chunking : plan) {
    for (const IndexRange rows :
         chunk_rows(layer.shape.n_tokens, chunking.chunk_size, chunking.chunk_offset)) {
      total_work += chunk_work(layer.rules, rows);
    }
  }
  std::vector<SourceScores> sources;
  for (const SharedChunking& chunking : plan) {
    sources.push_back(source_scores(layer, chunking, configs, settings.n_threads));
  }
  ProgressCounter counter(progress, total_work * static_cast<double>(layer.shape.n_kv_heads));

  std::vector<CellResult> results = empty_results(layer, configs, settings);
  for (Index kv_head = 0; kv_head < layer.shape.n_kv_heads; ++kv_head) {
    const HeadGroup tensors = layer.load_group(kv_head);
    const GroupView group = group_view(tensors, kv_head);
    check_group(layer, group);
    const UnitRows unit_keys = unit_rows(group.k);
    std::vector<CellStore> cells;
    std::vector<std::vector<KeptKeys>> kept(configs.size());
    for (std::size_t c = 0; c < configs.size(); ++c) {
      const std::vector<IndexRange> chunks =
          chunk_rows(layer.shape.n_tokens, configs[c].chunk_size, configs[c].chunk_offset);
      cells.emplace_back(configs[c], layer.rules, chunks, group.group_size(), settings.min_history);
      kept[c].resize(chunks.size());
    }
    GroupReplay replay{layer, settings, configs, group, unit_keys.rows, unit_keys.n_zero,
                       {},    cells,    kept};
    for (const ConstMatrixView& q : group.q) {
      replay.n_zero_queries.push_back(unit_rows(q).n_zero);
    }
    const std::vector<DenseStore> dense_stores = replay_group(replay, plan, sources, counter);
    for (std::size_t p = 0; p < plan.size(); ++p) {
      const std::vector<Index>& members = plan[p].config_indices;
      parallel_for(static_cast<Index>(members.size()), settings.n_threads, [&](Index item, int) {
        const auto c = static_cast<std::size_t>(members[static_cast<std::size_t>(item)]);
        store_cell(replay, c, dense_stores[p], results[c]);
      });
    }
    append_kept(kept, results);
  }
  for (CellResult& result : results) {
    std::ranges::stable_sort(result.kept, {}, &KeptKeys::chunk_begin);
  }
  return results;
}

}  // namespace quoka
