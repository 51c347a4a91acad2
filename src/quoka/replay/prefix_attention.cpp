#include "quoka/replay/prefix_attention.hpp"

#include <algorithm>

#include "quoka/core/error.hpp"
#include "quoka/core/lane_product.hpp"

namespace quoka {
namespace {

/// Keys added at a time: their rows of lanes stay in the cache.
constexpr Index block = 64;

PrefixSums empty_sums(const ChunkBase& base, Candidates candidates) {
  const Index n_lanes = base.out.cols();
  return {.numerators = candidates == Candidates::history ? base.own_numerator
                                                          : Matrix::Zero(base.out.rows(), n_lanes),
          .history_no_sink = LaneSums(n_lanes),
          .sinks = LaneSums(n_lanes),
          .own = LaneSums(n_lanes)};
}

}  // namespace

PrefixAttention::PrefixAttention(const ChunkBase& base, const KeySequence& sequence,
                                 Candidates candidates)
    : base_(base),
      sequence_(sequence),
      probs_(block, base.out.cols()),
      values_(block, base.out.rows()),
      full_blocks_(empty_sums(base, candidates)),
      with_part_(full_blocks_) {}

const PrefixSums& PrefixAttention::at(Index n) {
  QUOKA_ASSERT(n >= n_full_ && n <= static_cast<Index>(sequence_.keys.size()));
  while (n_full_ + block <= n) {
    add(full_blocks_, {n_full_, n_full_ + block});
    n_full_ += block;
  }
  if (n_full_ == n) {
    return full_blocks_;
  }
  with_part_ = full_blocks_;
  add(with_part_, {n_full_, n});
  return with_part_;
}

void PrefixAttention::add(PrefixSums& sums, IndexRange places) {
  const ChunkContext& context = base_.context;
  const Index chunk_begin = context.chunk_begin();
  for (Index i = 0; i < places.size(); ++i) {
    const Index key = sequence_.keys[static_cast<std::size_t>(places.begin + i)];
    probs_.row(i) = context.dense.probs.row(key - context.dense.keys.begin);
    values_.row(i) = context.group.v.row(key);
    // Sinks are summed apart: next to them the rest of a row's mass may be below the last digit.
    LaneSums& mass = key >= chunk_begin      ? sums.own
                     : key < base_.sink_size ? sums.sinks
                                             : sums.history_no_sink;
    mass.add(&probs_(i, 0));
  }
  const ConstMatrixView values = row_view(view(values_), {0, places.size()});
  add_lane_product(turned(values), lanes(probs_, {0, places.size()}), lanes(sums.numerators));
}

}  // namespace quoka
