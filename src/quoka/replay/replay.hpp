#pragma once

/// One attention layer through chunked prefill: exactly (dense) once, and once per configuration of
/// a key selector. Comes in: q, k, v of one KV head at a time and the configurations. Goes out: the
/// columns of metrics/columns.hpp per configuration and query head. Knows no files.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "quoka/attention/group_view.hpp"
#include "quoka/core/attention_rules.hpp"
#include "quoka/core/attention_shape.hpp"
#include "quoka/core/matrix.hpp"
#include "quoka/metrics/needles.hpp"
#include "quoka/selection/config.hpp"

namespace quoka {

/// The tensors that one KV head and its group of query heads need.
struct HeadGroup {
  std::vector<Matrix> q;  ///< group_size matrices [n_tokens, k_head_dim]
  Matrix k;               ///< [n_keys, k_head_dim]
  Matrix v;               ///< [n_keys, v_head_dim]
};

/// One layer as the replay sees it. load_group reads one KV head's tensors (called once per KV
/// head, in order, from the calling thread) and must throw if they hold NaN or infinity.
struct LayerInput {
  AttentionShape shape;
  AttentionRules rules;
  Index layer_idx = 0;
  std::vector<NeedleGroup> needles;  ///< absolute positions; may be empty
  std::function<HeadGroup(Index kv_head)> load_group;
  /// Another layer of the same capture; only less_is_more asks for one. Must throw ConfigError if
  /// the capture does not hold it; may be empty.
  std::function<LayerInput(Index layer_idx)> other_layer = {};
};

/// Views of a group's tensors, which must outlive them.
GroupView group_view(const HeadGroup& tensors, Index kv_head);

/// Constants of a sweep (the same for all its configurations).
struct ReplaySettings {
  Index sink_size = 4;      ///< leading positions that *_no_sink leaves out, >= 0
  Index min_history = 0;    ///< chunks with fewer history keys are not active, >= 0
  bool by_chunk = false;    ///< also return the means per chunk
  bool selections = false;  ///< also return the kept keys
  int n_threads = 1;        ///< never changes a result
};

/// What one (chunk, KV head) kept. key_indices are absolute positions, ascending.
struct KeptKeys {
  Index chunk_begin = 0;
  Index kv_head = 0;
  std::vector<std::int32_t> key_indices;
  float cut_score = 0;   ///< score of the last key kept by score; NaN without scores
  float cut_margin = 0;  ///< cut_score minus the score of the first rejected key; NaN without
};

/// Everything measured for one configuration on one layer.
struct CellResult {
  Matrix values;                     ///< [n_q_heads, cell_columns().size()]
  std::vector<IndexRange> chunks;    ///< absolute positions; filled if by_chunk
  std::vector<Matrix> chunk_values;  ///< per chunk [n_q_heads, chunk_columns().size()], if by_chunk
  std::vector<KeptKeys> kept;        ///< by chunk, then KV head; active chunks only, if selections
};

/// Called with the share of the layer's work that is done, in [0, 1]; from any thread, one at a
/// time. An exception from it stops the replay (this is how a sweep is interrupted).
using ReplayProgress = std::function<void(double done)>;

/// Replays the layer under every configuration. Returns one result per configuration, in order.
///
/// Work is shared: one dense pass per (chunking, chunk, KV head), each distinct score vector once,
/// budgets nested in one ordering. Results are bit-identical for any n_threads and any set of other
/// configurations.
///
/// Cost: O(n_tokens * n_keys * (k_head_dim + v_head_dim) * n_q_heads) once per chunking, and about
/// a
///       third of that per distinct scoring. Memory: replay_bytes.
/// Throws: what load_group and progress throw; FormatError if q.k overflows float32; ConfigError if
///         values of a configuration do not fit together.
std::vector<CellResult> replay_layer(const LayerInput& layer,
                                     std::span<const SelectorConfig> configs,
                                     const ReplaySettings& settings,
                                     const ReplayProgress& progress = {});

/// Peak bytes that replay_layer allocates, within about 10 %. Linear in n_keys.
std::int64_t replay_bytes(const AttentionShape& shape, std::span<const SelectorConfig> configs,
                          const ReplaySettings& settings);

/// Floating-point operations of replay_layer, for estimates of time.
double replay_flops(const AttentionShape& shape, std::span<const SelectorConfig> configs);

}  // namespace quoka
