#include "quoka/attention/dense.hpp"

#include <algorithm>

#include "quoka/attention/lane_queries.hpp"
#include "quoka/attention/lane_softmax.hpp"
#include "quoka/attention/visibility.hpp"
#include "quoka/core/float64_sums.hpp"

namespace quoka {
namespace {

/// Keys that are worked on while their rows of lanes are in the cache.
constexpr Index block_size = 48;

std::vector<IndexRange> key_blocks(Index n_keys) {
  std::vector<IndexRange> blocks;
  for (Index begin = 0; begin < n_keys; begin += block_size) {
    blocks.push_back({begin, std::min(begin + block_size, n_keys)});
  }
  return blocks;
}

/// Calls function(first lane, block) for the lanes of these rows of probs, panel by panel.
template <typename Function>
void for_each_panel(Matrix& probs, IndexRange keys, const Function& function) {
  for (Index lane = 0; lane < probs.cols(); lane += lane_panel) {
    const Index width = std::min(lane_panel, probs.cols() - lane);
    function(lane, Lanes(&probs(keys.begin, lane), keys.size(), width,
                         Eigen::OuterStride<>(probs.cols())));
  }
}

}  // namespace

DenseChunk dense_chunk(const GroupView& group, const AttentionRules& rules, IndexRange rows) {
  const Index n_lanes = group.group_size() * rows.size();
  const IndexRange keys{visible_keys(rules, rules.q_offset + rows.begin).begin,
                        rules.q_offset + rows.end};
  DenseChunk chunk{.rows = rows,
                   .keys = keys,
                   .probs = Matrix(keys.size(), padded_lanes(n_lanes)),
                   .sink_probs = {},
                   .lse = {},
                   .out = {},
                   .pooled = VectorD(keys.size())};
  const ConstMatrixView k = row_view(group.k, keys);
  const ConstMatrixView v = row_view(group.v, keys);
  const LaneQueries queries(group, rows);
  LaneSoftmax softmax(group, rules, rows);
  const auto block_at = [&](IndexRange block) {
    return softmax.block_of({keys.begin + block.begin, keys.begin + block.end});
  };
  // The largest logits first: the probabilities then need one exponential each.
  for (const IndexRange block : key_blocks(keys.size())) {
    const KeyBlock key_block = block_at(block);
    for_each_panel(chunk.probs, block, [&](Index lane, Lanes logits) {
      lane_product(as_is(row_view(k, block)), queries.panel(lane, logits.cols()), logits);
      softmax.to_logits(key_block, lane, logits);
    });
  }
  for (const IndexRange block : key_blocks(keys.size())) {
    const KeyBlock key_block = block_at(block);
    for_each_panel(chunk.probs, block, [&](Index lane, Lanes weights) {
      softmax.to_weights(key_block, lane, weights);
    });
  }
  const LaneSoftmax::Totals totals = softmax.totals();
  chunk.sink_probs = totals.sink_probs;
  chunk.lse = totals.lse;
  Matrix out = Matrix::Zero(v.cols(), chunk.probs.cols());
  for (const IndexRange block : key_blocks(keys.size())) {
    Lanes probs = lanes(chunk.probs, block);
    probs.array().rowwise() *= totals.factors.transpose();
    for (Index key = block.begin; key < block.end; ++key) {
      chunk.pooled[key] = sum_float64(&chunk.probs(key, 0), chunk.probs.cols());
    }
    add_lane_product(turned(row_view(v, block)), probs, lanes(out));
  }
  chunk.out = out.leftCols(n_lanes).transpose();
  return chunk;
}

}  // namespace quoka
