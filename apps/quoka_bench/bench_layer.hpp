#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quoka/attention/group_view.hpp"
#include "quoka/capture/reader.hpp"
#include "quoka/capture/synthetic.hpp"
#include "quoka/replay/replay.hpp"
#include "quoka_bench/options.hpp"

namespace quoka::apps {

/// One chunk behind its history; the keys are views of the layer's.
struct BenchChunk {
  std::vector<Matrix> q;  ///< per query head [chunk_size, head_dim]
  AttentionRules rules;   ///< q_offset is the length of the history
  std::vector<GroupView> groups;

  [[nodiscard]] Index history() const { return rules.q_offset; }
  [[nodiscard]] IndexRange rows() const { return {0, q.front().rows()}; }
};

/// Keys and values of one layer in memory, of a capture or synthetic; queries are made or read per
/// chunk.
class BenchLayer {
 public:
  /// Synthetic, with n_tokens keys.
  BenchLayer(const BenchOptions& options, Index head_dim, Index n_tokens);
  /// The layer of options.capture. Throws: as CaptureReader.
  explicit BenchLayer(const BenchOptions& options);

  [[nodiscard]] const AttentionShape& shape() const { return layer_.shape; }
  /// "synthetic, seed 0" or the file and layer.
  [[nodiscard]] const std::string& source() const { return source_; }

  /// Throws: ConfigError if the layer has no such tokens.
  [[nodiscard]] BenchChunk chunk(Index history, Index chunk_size) const;

  /// The whole layer for a replay, tensors in memory.
  [[nodiscard]] LayerInput replay_input() const;

 private:
  [[nodiscard]] Matrix rows(Tensor tensor, Index head, IndexRange rows) const;
  void load_keys();

  SyntheticOptions synthetic_;
  std::unique_ptr<CaptureReader> reader_;  ///< null: synthetic
  CaptureLayer layer_;
  std::string source_;
  std::vector<Matrix> k_;  ///< per KV head [n_keys, k_head_dim]
  std::vector<Matrix> v_;
};

/// Options of a synthetic capture. Throws: ConfigError if they are not possible.
SyntheticOptions synthetic_options(const BenchOptions& options, Index head_dim, Index n_tokens);

}  // namespace quoka::apps
