#include "quoka/replay/replay_chunk.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "quoka/metrics/output_error.hpp"
#include "quoka/replay/measure_sequence.hpp"
#include "quoka/selection/keep_queries.hpp"
#include "quoka/selection/score.hpp"

namespace quoka {
namespace {

/// Compares the evenly spaced floor rows that fall into this chunk with a float64 computation.
void measure_floor(const GroupReplay& replay, const DenseChunk& dense, DenseStore& store) {
  const std::vector<Index> rows = evenly_spaced_rows(replay.layer.shape.n_tokens, n_floor_rows);
  for (Index i = 0; i < n_floor_rows; ++i) {
    const Index row = rows[static_cast<std::size_t>(i)];
    if (!dense.rows.contains(row)) {
      continue;
    }
    for (Index head = 0; head < replay.group.group_size(); ++head) {
      const VectorD exact = dense_row_float64(replay.group, replay.layer.rules, head, row);
      const auto computed = dense.out.row(dense.lane(head, row - dense.rows.begin)).cast<double>();
      const double norm = exact.norm();
      store.floor_errors(i, head) = norm < smallest_denominator
                                        ? std::numeric_limits<double>::quiet_NaN()
                                        : (computed.transpose() - exact).norm() / norm;
    }
  }
}

/// The active configurations of a sequence in this chunk, ascending in keys kept.
std::vector<SequenceMember> active_members(const GroupReplay& replay,
                                           const SharedSequence& sequence, Index chunk) {
  std::vector<SequenceMember> members;
  for (const Index config : sequence.config_indices) {
    CellStore& cell = replay.cells[static_cast<std::size_t>(config)];
    if (cell.is_active(chunk)) {
      members.push_back({&cell, cell.facts(chunk).keys_kept()});
    }
  }
  std::ranges::stable_sort(members, {}, &SequenceMember::n_keys);
  return members;
}

void store_selections(const GroupReplay& replay, const SharedSequence& shared,
                      const KeySequence& sequence, Index chunk, Index chunk_begin) {
  for (const Index config : shared.config_indices) {
    const CellStore& cell = replay.cells[static_cast<std::size_t>(config)];
    if (!cell.is_active(chunk)) {
      continue;
    }
    const Index n_keys = cell.facts(chunk).keys_kept();
    const CutOff cut = cut_off(sequence, n_keys);
    KeptKeys kept{.chunk_begin = chunk_begin,
                  .kv_head = replay.group.kv_head,
                  .key_indices = {sequence.keys.begin(), sequence.keys.begin() + n_keys},
                  .cut_score = static_cast<float>(cut.score),
                  .cut_margin = static_cast<float>(cut.margin)};
    std::ranges::sort(kept.key_indices);
    replay.kept[static_cast<std::size_t>(config)][static_cast<std::size_t>(chunk)] =
        std::move(kept);
  }
}

/// The oracle's ranks per kind of candidates, computed when first needed, as far as any
/// configuration of the chunking needs them.
class LazyOracle {
 public:
  LazyOracle(const GroupReplay& replay, const SharedChunking& chunking, Index chunk)
      : replay_(replay), chunking_(chunking), chunk_(chunk) {}

  const OracleRanks& ranks(const ChunkContext& context, Candidates which) {
    const auto found = ranks_.find(which);
    if (found != ranks_.end()) {
      return found->second;
    }
    Index length = 0;
    for (const Index config : chunking_.config_indices) {
      const auto c = static_cast<std::size_t>(config);
      if (replay_.configs[c].candidates == which && replay_.cells[c].is_active(chunk_)) {
        length = std::max(length, replay_.cells[c].facts(chunk_).keys_kept());
      }
    }
    return ranks_.emplace(which, OracleRanks(context, which, length)).first->second;
  }

 private:
  const GroupReplay& replay_;
  const SharedChunking& chunking_;
  Index chunk_;
  std::map<Candidates, OracleRanks> ranks_;
};

/// Counts the chunks whose mean query is the zero vector, for every configuration that uses it.
void count_zero_means(const GroupReplay& replay, const SharedChunking& chunking,
                      const ChunkContext& context, Index chunk) {
  for (const Index config : chunking.config_indices) {
    const auto c = static_cast<std::size_t>(config);
    for (Index head = 0; head < replay.group.group_size(); ++head) {
      replay.cells[c].record(chunk, head).zero_mean =
          uses_zero_mean(context, replay.configs[c], head);
    }
  }
}

}  // namespace

void replay_chunk(const GroupReplay& replay, const SharedChunking& chunking, const ChunkTask& task,
                  DenseStore& dense_store) {
  const IndexRange rows = task.rows;
  const Index chunk = task.chunk;
  const AttentionRules& rules = replay.layer.rules;
  const DenseChunk dense = dense_chunk(replay.group, rules, rows);
  measure_floor(replay, dense, dense_store);
  const ChunkBase base = chunk_base({.group = replay.group,
                                     .unit_keys = replay.unit_keys,
                                     .dense = dense,
                                     .queries = measure_queries(replay.group, rows),
                                     .rules = rules,
                                     .layer_idx = replay.layer.layer_idx,
                                     .source_pooled = task.source_pooled},
                                    rules, replay.settings.sink_size, replay.layer.needles);
  for (Index head = 0; head < replay.group.group_size(); ++head) {
    dense_store.sink_mass(chunk, head) =
        base.sink_mass.segment(head * rows.size(), rows.size()).sum();
  }
  count_zero_means(replay, chunking, base.context, chunk);

  LazyOracle oracle(replay, chunking, chunk);
  for (const SharedScores& shared : chunking.scores) {
    VectorD scores;
    bool have_scores = false;
    for (const SharedSequence& sequence : shared.sequences) {
      const std::vector<SequenceMember> members = active_members(replay, sequence, chunk);
      if (members.empty()) {
        continue;
      }
      if (!have_scores) {
        scores = score_candidates(base.context, shared.config);
        have_scores = true;
      }
      // One key more than the largest budget: the first rejected one.
      const KeySequence keys =
          key_sequence(base.context, sequence.config, scores, members.back().n_keys + 1);
      const Candidates candidates = sequence.config.candidates;
      measure_sequence(base, rules, keys, candidates, oracle.ranks(base.context, candidates), chunk,
                       members);
      if (replay.settings.selections) {
        store_selections(replay, sequence, keys, chunk, base.context.chunk_begin());
      }
    }
  }
}

}  // namespace quoka
