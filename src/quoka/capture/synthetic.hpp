#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "quoka/capture/schema.hpp"
#include "quoka/core/attention_rules.hpp"
#include "quoka/core/attention_shape.hpp"
#include "quoka/core/matrix.hpp"

namespace quoka {

/// A capture that no model made, with the structure that key selection lives on:
/// - most queries lie near their head's mean query and attend the first tokens (sinks);
/// - the other keys form clusters; about one query in 16 is an outlier that attends one earlier
/// cluster;
/// - a planted span of keys (the needle) that only the last queries (the question) attend.
/// The numbers are integer sums of a counter-based hash, scaled: the same on every machine.
struct SyntheticOptions {
  Index n_q_heads = 8;
  Index n_kv_heads = 2;
  Index n_tokens = 1024;
  Index k_head_dim = 64;
  Index v_head_dim = 64;
  Index n_layers = 1;
  AttentionRules
      rules;  ///< scale 0 = 1 / sqrt(k_head_dim); sinks and slopes are made by the flags below
  bool with_sinks = false;  ///< a learned sink logit per query head
  Alibi alibi = Alibi::none;
  StorageType storage = StorageType::float16;
  std::uint64_t seed = 0;

  SyntheticOptions() { rules.scale = 0; }
};

/// The layer that the options describe. Throws: ConfigError if sizes are not positive or do not
/// fit.
CaptureLayer synthetic_layer(const SyntheticOptions& options, Index layer_idx);

/// Rows of one head before they are rounded to the storage type; any block gives the same numbers.
///
/// Shapes:  returns [rows.size(), k_head_dim or v_head_dim]; rows count from the tensor's first.
/// Cost: O(rows.size() * columns). tensor is q, k or v.
Matrix synthetic_rows(const SyntheticOptions& options, Index layer_idx, Tensor tensor, Index head,
                      IndexRange rows);

/// The needle (8 tokens, a third into the sequence) and the question (the last 16 tokens), group 0;
/// none if there are fewer than 64 keys or fewer than 16 queries.
std::vector<Annotation> synthetic_annotations(const SyntheticOptions& options);

/// Writes the capture in blocks of rows. The same options give the same bytes. Memory: a few MiB.
/// Throws: ConfigError, IoError.
void write_synthetic_capture(const std::filesystem::path& path, const SyntheticOptions& options);

}  // namespace quoka
