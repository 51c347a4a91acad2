#include "quoka/attention/lane_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "quoka/attention/visibility.hpp"
#include "quoka/core/error.hpp"

namespace quoka {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// The larger of two, lane by lane; NaN if one is NaN.
Lane larger(const Lane& a, const Lane& b) {
  return a.binaryExpr(b, Eigen::internal::scalar_max_op<float, float, Eigen::PropagateNaN>());
}

void add_in_float64(const Lane& lanes, double* sums) {
  for (Index l = 0; l < lane_width; ++l) {
    sums[l] += static_cast<double>(lanes[l]);
  }
}

}  // namespace

LaneSoftmax::LaneSoftmax(const GroupView& group, const AttentionRules& rules, IndexRange rows)
    : rules_(rules), rows_(rows) {
  const Index n_lanes = padded_lanes(group.group_size() * rows.size());
  row_of_lane_ = LaneArray(n_lanes);
  for (Index lane = 0; lane < n_lanes; ++lane) {
    row_of_lane_[lane] = static_cast<float>(lane % rows.size());
  }
  largest_ = LaneArray::Constant(n_lanes, -infinity);
  alibi_slopes_ = LaneArrayD::Zero(n_lanes);
  sums_ = LaneArrayD::Zero(n_lanes);
  for (Index head = 0; head < group.group_size(); ++head) {
    const LogitRule& rule = heads_.emplace_back(logit_rule(rules, group.q_head(head)));
    const Index lane = head * rows.size();
    largest_.segment(lane, rows.size()).setConstant(static_cast<float>(rule.sink));
    alibi_slopes_.segment(lane, rows.size()).setConstant(rule.alibi_slope);
  }
}

KeyBlock LaneSoftmax::block_of(IndexRange keys) const {
  KeyBlock block{keys};
  const auto seen_by_all = [this](Index key) {
    return rows_that_see(rules_, rows_, key).size() == rows_.size();
  };
  // What a row may see is one range: if it sees both ends, it sees everything between.
  if (!seen_by_all(keys.begin) || !seen_by_all(keys.end - 1)) {
    for (Index key = keys.begin; key < keys.end; ++key) {
      block.seen_by.push_back(rows_that_see(rules_, rows_, key));
    }
  }
  return block;
}

Lane LaneSoftmax::hide(IndexRange seen_by, Index lane, const Lane& lanes, float value) const {
  const auto begin = static_cast<float>(seen_by.begin);
  const auto end = static_cast<float>(seen_by.end);
  const float* const row = row_of_lane_.data() + lane;
  Lane result;
  // Constant length and no branches: the compiler makes vectors of it, Eigen's select would not be.
  for (Index l = 0; l < lane_width; ++l) {
    const bool sees = static_cast<int>(row[l] >= begin) & static_cast<int>(row[l] < end);
    result[l] = sees ? lanes[l] : value;
  }
  return result;
}

Lane LaneSoftmax::alibi(Index key_pos, Index lane) const {
  const auto distance_from_first = static_cast<double>(key_pos - rules_.q_offset - rows_.begin);
  const double* const slope = alibi_slopes_.data() + lane;
  const float* const row = row_of_lane_.data() + lane;
  Lane bias;
  for (Index l = 0; l < lane_width; ++l) {
    bias[l] = static_cast<float>(slope[l] * (distance_from_first - static_cast<double>(row[l])));
  }
  return bias;
}

void LaneSoftmax::to_logits(const KeyBlock& keys, Index first_lane, Lanes block) {
  const LogitRule& rule = heads_.front();  // scale and cap are the layer's
  const auto scale = static_cast<float>(rule.scale);
  const auto cap = static_cast<float>(rule.softcap);
  for (Index l = 0; l < block.cols(); l += lane_width) {
    const Index lane = first_lane + l;
    Eigen::Map<Lane> so_far(largest_.data() + lane);
    Lane largest = so_far;
    for (Index key = 0; key < block.rows(); ++key) {
      Eigen::Map<Lane> products(&block(key, l));
      Lane logits = products * scale;
      if (cap > 0) {
        logits = (products * (scale / cap)).tanh() * cap;
      }
      if (has_alibi()) {
        logits += alibi(keys.keys.begin + key, lane);
      }
      if (!keys.seen_by.empty()) {
        logits = hide(keys.seen_by[static_cast<std::size_t>(key)], lane, logits, -infinity);
      }
      products = logits;
      largest = larger(largest, logits);
    }
    so_far = largest;
  }
}

void LaneSoftmax::to_weights(const KeyBlock& keys, Index first_lane, Lanes block) {
  for (Index l = 0; l < block.cols(); l += lane_width) {
    const Index lane = first_lane + l;
    const Lane largest = Eigen::Map<const Lane>(largest_.data() + lane);
    for (Index begin = 0; begin < block.rows(); begin += rows_in_float32) {
      Lane sum = Lane::Zero();
      for (Index key = begin; key < std::min(begin + rows_in_float32, block.rows()); ++key) {
        Eigen::Map<Lane> logits(&block(key, l));
        Lane weights = (logits - largest).exp();
        if (!keys.seen_by.empty()) {
          weights = hide(keys.seen_by[static_cast<std::size_t>(key)], lane, weights, 0.0F);
        }
        logits = weights;
        sum += weights;
      }
      add_in_float64(sum, sums_.data() + lane);
    }
  }
}

LaneArray LaneSoftmax::rescale(Index first_lane, const LaneArray& largest_before) {
  const auto now = largest_.segment(first_lane, largest_before.size());
  const LaneArray shrink = (largest_before - now).exp();
  const LaneArray factors = (now > largest_before).select(shrink, 1.0F);
  sums_.segment(first_lane, factors.size()) *= factors.cast<double>();
  return factors;
}

LaneSoftmax::Totals LaneSoftmax::totals() const {
  Totals result{.factors = LaneArray::Zero(largest_.size()),
                .sink_probs = LaneArray(n_lanes()),
                .lse = LaneArray(n_lanes())};
  for (Index lane = 0; lane < n_lanes(); ++lane) {
    const float largest = largest_[lane];
    // The sum is NaN after a block of which all logits were -inf.
    require<FormatError>(
        std::isfinite(largest) && std::isfinite(sums_[lane]),
        "the attention logits of token {} are not finite, their largest is {} (q.k overflows "
        "float32, or a sink logit is not finite)",
        rows_.begin + lane % rows_.size(), largest);
    const LogitRule& rule = heads_[static_cast<std::size_t>(lane / rows_.size())];
    const SoftmaxTail tail = softmax_tail(rule, largest, sums_[lane]);
    result.factors[lane] = tail.factor;
    result.sink_probs[lane] = tail.sink_prob;
    result.lse[lane] = tail.lse;
  }
  return result;
}

}  // namespace quoka
