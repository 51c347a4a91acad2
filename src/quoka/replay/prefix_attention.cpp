#include "quoka/replay/prefix_attention.hpp"

#include <algorithm>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

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

PrefixSums PrefixAttention::at(Index n) {
  QUOKA_ASSERT(n >= n_full_ && n <= probs_.cols());
  while (n_full_ + block <= n) {
    add(full_blocks_, n_full_, block);
    n_full_ += block;
  }
  PrefixSums sums = full_blocks_;
  if (n_full_ < n) {
    add(sums, n_full_, n - n_full_);
  }
  return sums;
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
  const auto segment = probs_.row(row).segment(begin, end - begin).cast<double>();
  return in_history_.size() == 0 ? segment.sum()
                                 : segment.dot(in_history_.segment(begin, end - begin).transpose());
}

}  // namespace quoka
