#include "quoka/attention/dense.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "quoka/attention/key_products.hpp"
#include "quoka/attention/softmax.hpp"
#include "quoka/attention/visibility.hpp"
#include "quoka/core/error.hpp"

namespace quoka {
namespace {

/// Keys that are worked on while their lanes are in the cache.
constexpr Index key_block = 240;

/// The softmax of all lanes of a chunk side by side. Every lane's largest logit is found first: the
/// probabilities of a lane then need one exponential each.
class LaneSoftmax {
 public:
  LaneSoftmax(const GroupView& group, const AttentionRules& rules, DenseChunk& chunk);

  /// Turns products into logits and raises the largest ones; hidden logits become -inf.
  void to_logits(Index key);
  /// Turns logits into weights exp(logit - largest) and adds them up; hidden weights become 0.
  void to_weights();
  /// Ends the sums: fills sink_probs and lse.
  void finish_sums();
  /// Turns weights into probabilities.
  void to_probs(Index key);

 private:
  void add_alibi(Index key_pos, float* logits) const;
  /// Sets the lanes of rows that may not see the key.
  void hide(Index key, float value);

  const AttentionRules& rules_;
  DenseChunk& chunk_;
  std::vector<LogitRule> heads_;
  LaneArray largest_;
  LaneSums sums_;
  LaneArray factors_;  ///< 1 / sum of weights; 0 in lanes of padding
};

LaneSoftmax::LaneSoftmax(const GroupView& group, const AttentionRules& rules, DenseChunk& chunk)
    : rules_(rules),
      chunk_(chunk),
      largest_(LaneArray::Constant(chunk.probs.cols(), -std::numeric_limits<float>::infinity())),
      sums_(chunk.probs.cols()),
      factors_(LaneArray::Zero(chunk.probs.cols())) {
  for (Index head = 0; head < group.group_size(); ++head) {
    heads_.push_back(logit_rule(rules, group.q_head(head)));
    largest_.segment(chunk.lane(head, 0), chunk.rows.size())
        .setConstant(static_cast<float>(heads_.back().sink));
  }
}

void LaneSoftmax::hide(Index key, float value) {
  const IndexRange seeing = rows_that_see(rules_, chunk_.rows, chunk_.keys.begin + key);
  if (seeing.size() == chunk_.rows.size()) {
    return;
  }
  for (Index head = 0; head < static_cast<Index>(heads_.size()); ++head) {
    auto lanes = chunk_.probs.row(key).segment(chunk_.lane(head, 0), chunk_.rows.size());
    lanes.head(seeing.begin).setConstant(value);
    lanes.tail(chunk_.rows.size() - seeing.end).setConstant(value);
  }
}

void LaneSoftmax::add_alibi(Index key_pos, float* logits) const {
  for (Index head = 0; head < static_cast<Index>(heads_.size()); ++head) {
    const double slope = heads_[static_cast<std::size_t>(head)].alibi_slope;
    for (Index i = 0; i < chunk_.rows.size(); ++i) {
      const Index query_pos = rules_.q_offset + chunk_.rows.begin + i;
      logits[chunk_.lane(head, i)] +=
          static_cast<float>(slope * static_cast<double>(key_pos - query_pos));
    }
  }
}

void LaneSoftmax::to_logits(Index key) {
  const LogitRule& rule = heads_.front();  // scale and cap are the layer's
  const auto scale = static_cast<float>(rule.scale);
  const auto cap = static_cast<float>(rule.softcap);
  float* const logits = &chunk_.probs(key, 0);
  const Index n_lanes = chunk_.probs.cols();
  if (cap > 0) {
    for_each_lane(logits, n_lanes, [scale, cap](const Lane& x, Index) -> Lane {
      return (x * (scale / cap)).tanh() * cap;
    });
  } else {
    for_each_lane(logits, n_lanes, [scale](const Lane& x, Index) -> Lane { return x * scale; });
  }
  if (rules_.alibi != Alibi::none) {
    add_alibi(chunk_.keys.begin + key, logits);
  }
  hide(key, -std::numeric_limits<float>::infinity());
  float* const largest = largest_.data();
  for (Index l = 0; l < n_lanes; ++l) {
    const bool is_larger = logits[l] > largest[l] || std::isnan(logits[l]);  // NaN stays
    largest[l] = is_larger ? logits[l] : largest[l];
  }
}

void LaneSoftmax::to_weights() {
  for (Index lane = 0; lane < chunk_.lse.size(); ++lane) {
    require<FormatError>(
        std::isfinite(largest_[lane]),
        "the largest attention logit of a row is {} (q.k overflows float32, or a sink logit is not "
        "finite)",
        largest_[lane]);
  }
  for (Index key = 0; key < chunk_.keys.size(); ++key) {
    float* const weights = &chunk_.probs(key, 0);
    for_each_lane(weights, chunk_.probs.cols(), [this](const Lane& x, Index l) -> Lane {
      return (x - Eigen::Map<const Lane>(largest_.data() + l)).exp();
    });
    hide(key, 0.0F);
    sums_.add(weights);
  }
}

void LaneSoftmax::finish_sums() {
  const LaneArrayD sums = sums_.total();
  for (Index lane = 0; lane < chunk_.lse.size(); ++lane) {
    const LogitRule& rule = heads_[static_cast<std::size_t>(lane / chunk_.rows.size())];
    const auto largest = static_cast<double>(largest_[lane]);
    const double sink = rule.has_sink() ? std::exp(rule.sink - largest) : 0.0;
    const double sum = sums[lane] + sink;
    factors_[lane] = static_cast<float>(1.0 / sum);
    chunk_.sink_probs[lane] = static_cast<float>(sink / sum);
    chunk_.lse[lane] = static_cast<float>(largest + std::log(sum));
  }
}

void LaneSoftmax::to_probs(Index key) {
  for_each_lane(&chunk_.probs(key, 0), chunk_.probs.cols(), [this](const Lane& x, Index l) -> Lane {
    return x * Eigen::Map<const Lane>(factors_.data() + l);
  });
}

/// Sum over lanes in float64. Eigen 3.4 does not turn float into double in vectors; the compiler
/// does, in lanes of a fixed number.
double sum_of(const float* lanes, Index n_lanes) {
  std::array<double, lane_width> sums{};
  for (Index l = 0; l < n_lanes; l += lane_width) {
    for (Index i = 0; i < lane_width; ++i) {
      sums[static_cast<std::size_t>(i)] += static_cast<double>(lanes[l + i]);
    }
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

std::vector<IndexRange> key_blocks(Index n_keys) {
  std::vector<IndexRange> blocks;
  for (Index begin = 0; begin < n_keys; begin += key_block) {
    blocks.push_back({begin, std::min(begin + key_block, n_keys)});
  }
  return blocks;
}

/// The group's queries of the chunk, one row per lane, zeros beyond the last.
Matrix stacked_queries(const GroupView& group, IndexRange rows) {
  Matrix queries = Matrix::Zero(padded_lanes(group.group_size() * rows.size()), group.k.cols());
  for (Index head = 0; head < group.group_size(); ++head) {
    queries.middleRows(head * rows.size(), rows.size()) =
        row_view(group.q[static_cast<std::size_t>(head)], rows);
  }
  return queries;
}

}  // namespace

DenseChunk dense_chunk(const GroupView& group, const AttentionRules& rules, IndexRange rows) {
  const Index n_lanes = group.group_size() * rows.size();
  const IndexRange keys{visible_keys(rules, rules.q_offset + rows.begin).begin,
                        rules.q_offset + rows.end};
  DenseChunk chunk{.rows = rows,
                   .keys = keys,
                   .probs = Matrix(keys.size(), padded_lanes(n_lanes)),
                   .sink_probs = Vector(n_lanes),
                   .lse = Vector(n_lanes),
                   .out = {},
                   .pooled = VectorD(keys.size())};
  const Matrix queries = stacked_queries(group, rows);
  const ConstMatrixView k = row_view(group.k, keys);
  const ConstMatrixView v = row_view(group.v, keys);
  LaneSoftmax softmax(group, rules, chunk);
  for (const IndexRange block : key_blocks(keys.size())) {
    key_products_by_key(queries, row_view(k, block),
                        chunk.probs.middleRows(block.begin, block.size()));
    for (Index key = block.begin; key < block.end; ++key) {
      softmax.to_logits(key);
    }
  }
  softmax.to_weights();
  softmax.finish_sums();
  Matrix out = Matrix::Zero(v.cols(), chunk.probs.cols());
  for (const IndexRange block : key_blocks(keys.size())) {
    for (Index key = block.begin; key < block.end; ++key) {
      softmax.to_probs(key);
      chunk.pooled[key] = sum_of(&chunk.probs(key, 0), chunk.probs.cols());
    }
    // By channel: then it is the lanes that fill the product's vectors.
    out.noalias() +=
        row_view(v, block).transpose() * chunk.probs.middleRows(block.begin, block.size());
  }
  chunk.out = out.leftCols(n_lanes).transpose();
  return chunk;
}

}  // namespace quoka
