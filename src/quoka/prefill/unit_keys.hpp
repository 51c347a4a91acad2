#pragma once

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Unit vectors of a growing list of keys, as an engine would keep them beside its key cache, in an
/// order that a few queries can score at memory speed: panels of 32 keys, each stored channel by
/// channel.
class UnitKeys {
 public:
  /// Room for `capacity` keys; all memory is taken here.
  UnitKeys(Index capacity, Index head_dim);

  /// Adds the unit vectors of these keys; a zero key stays zero.
  ///
  /// Shapes: keys [n, head_dim] with size() + n <= capacity.
  /// Cost: O(n * head_dim). Source: QUOKA (arXiv 2602.08722), Algorithm 1, line 7.
  void append(const ConstMatrixView& keys);

  /// Forgets all keys but the first n.
  void truncate(Index n);

  [[nodiscard]] Index size() const { return size_; }

  /// Largest cosine of each of the first n_keys keys with any of the slots.
  ///
  /// Shapes: slots [n_slots, head_dim] with n_slots >= 1, n_keys <= size(); returns [n_keys].
  /// Cost: 2 n_slots n_keys head_dim operations. The n_slots x n_keys products are never stored.
  /// Source: QUOKA (arXiv 2602.08722), Algorithm 1, lines 9 and 10.
  [[nodiscard]] Vector best_scores(const Matrix& slots, Index n_keys) const;

 private:
  Matrix panels_;  ///< [panels * head_dim, 32]
  Index head_dim_;
  Index size_ = 0;
};

}  // namespace quoka
