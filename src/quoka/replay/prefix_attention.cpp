#include "quoka/replay/prefix_attention.hpp"

#include <algorithm>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

/// Sum of at most `block` probabilities: in lanes of fixed places, so that it does not depend on
/// where the row lies in memory.
double sum_of(const float* values, Index n) {
  constexpr Index width = 16;
  using Lane = Eigen::Array<float, width, 1>;
  Lane lanes = Lane::Zero();
  Index i = 0;
  for (; i + width <= n; i += width) {
    lanes += Eigen::Map<const Lane>(values + i);
  }
  double sum = static_cast<double>(lanes.sum());
  for (; i < n; ++i) {
    sum += static_cast<double>(values[i]);
  }
  return sum;
}

/// Keys added at a time; long enough for an efficient matrix product.
constexpr Index block = 128;

}  // namespace

PrefixSums PrefixSums::zero(Index n_rows, Index v_head_dim) {
  return {.numerator = Matrix::Zero(n_rows, v_head_dim),
          .mass = VectorD::Zero(n_rows),
          .history = VectorD::Zero(n_rows),
          .history_no_sink = VectorD::Zero(n_rows)};
}

PrefixAttention::PrefixAttention(const ChunkContext& context, const KeySequence& sequence,
                                 Index sink_size)
    : full_blocks_(PrefixSums::zero(context.dense.probs.rows(), context.group.v.cols())) {
  const auto length = static_cast<Index>(sequence.keys.size());
  const Index first_key = context.dense.keys.begin;
  const Index chunk_begin = context.chunk_begin();
  values_.resize(length, context.group.v.cols());
  bool all_history = true;
  for (Index place = 0; place < length; ++place) {
    const Index key = sequence.keys[static_cast<std::size_t>(place)];
    values_.row(place) = context.group.v.row(key);
    all_history = all_history && key < chunk_begin;
    if (key < std::min(sink_size, chunk_begin)) {
      sink_places_.push_back(place);
    }
  }
  if (!all_history) {
    in_history_.resize(length);
    for (Index place = 0; place < length; ++place) {
      in_history_[place] = sequence.keys[static_cast<std::size_t>(place)] < chunk_begin ? 1.0 : 0.0;
    }
  }
  probs_.resize(context.dense.probs.rows(), length);
  for (Index row = 0; row < probs_.rows(); ++row) {
    const float* const dense = &context.dense.probs(row, 0);
    float* const gathered = &probs_(row, 0);
    for (Index place = 0; place < length; ++place) {
      gathered[place] = dense[sequence.keys[static_cast<std::size_t>(place)] - first_key];
    }
  }
}

const PrefixSums& PrefixAttention::at(Index n) {
  QUOKA_ASSERT(n >= n_full_ && n <= probs_.cols());
  while (n_full_ + block <= n) {
    add(full_blocks_, n_full_, block);
    n_full_ += block;
  }
  if (n_full_ == n) {
    return full_blocks_;
  }
  with_part_ = full_blocks_;
  add(with_part_, n_full_, n - n_full_);
  return with_part_;
}

void PrefixAttention::add(PrefixSums& sums, Index begin, Index count) const {
  sums.numerator.noalias() += probs_.middleCols(begin, count) * values_.middleRows(begin, count);
  // Sinks are added last: next to them the rest of a row's mass may be below the last digit.
  for (Index row = 0; row < probs_.rows(); ++row) {
    double sinks = 0;
    double no_sink = 0;
    Index from = begin;
    for (const Index place : sink_places_) {
      if (place >= begin && place < begin + count) {
        no_sink += history_sum(row, from, place);
        sinks += static_cast<double>(probs_(row, place));
        from = place + 1;
      }
    }
    no_sink += history_sum(row, from, begin + count);
    sums.history_no_sink[row] += no_sink;
    sums.history[row] += no_sink + sinks;
    sums.mass[row] += in_history_.size() == 0
                          ? no_sink + sinks
                          : probs_.row(row).segment(begin, count).cast<double>().sum();
  }
}

double PrefixAttention::history_sum(Index row, Index begin, Index end) const {
  if (in_history_.size() == 0) {
    return sum_of(&probs_(row, 0) + begin, end - begin);
  }
  double sum = 0;
  for (Index place = begin; place < end; ++place) {
    sum += in_history_[place] * static_cast<double>(probs_(row, place));
  }
  return sum;
}

}  // namespace quoka
