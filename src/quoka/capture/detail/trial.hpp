#pragma once

// Private to the capture room: a few rows of a layer replayed under other assumptions than the
// stored ones.

#include <optional>
#include <vector>

#include "quoka/capture/detail/precision.hpp"
#include "quoka/capture/detail/rotary.hpp"
#include "quoka/capture/reader.hpp"

namespace quoka::capture_detail {

// Some rows of one query head, with the output that they should give.
struct HeadSample {
  Index q_head = 0;
  std::vector<Index> rows;              // ascending, rows of q
  std::vector<std::int32_t> positions;  // that the rotary embedding used, per row
  Matrix q;                             // [rows, k_head_dim]
  Matrix out;                           // [rows, v_head_dim], or empty
  Vector lse;                           // [rows], or empty
};

struct LayerSample {
  CaptureLayer layer;
  std::vector<std::int32_t> positions;  // of the keys
  std::vector<Matrix> k;                // per KV head
  std::vector<Matrix> v;
  std::vector<HeadSample> heads;  // all query heads
  double tolerance = 0;           // up to here a trial fits
};

// Reads all keys and values of the layer, and n_rows rows spread over each query head (and its
// worst row, one per head).
LayerSample read_sample(const CaptureReader& reader, const CaptureLayer& layer,
                        const std::vector<Index>& worst_rows);

// What is assumed instead of what the file says.
struct Trial {
  AttentionRules rules;
  std::vector<Index> kv_heads;  // per query head
  bool swaps_k_and_v = false;
  std::optional<Rotary> rotate_q;
  std::optional<Rotary> rotate_k;
  bool rescales_rows = false;  // each row of q times a positive factor of its own, found here
};

// The assumptions of the file.
Trial stored_trial(const CaptureLayer& layer);

// Replayed rows of one query head.
struct TrialRows {
  Matrix out;
  Vector lse;
};
TrialRows replay_rows(const LayerSample& sample, const Trial& trial, const HeadSample& head);

// Worst over the heads: relative error of out, and difference of lse, whichever is larger.
double misfit(const LayerSample& sample, const Trial& trial, const std::vector<Index>& q_heads);

}  // namespace quoka::capture_detail
