#pragma once

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Largest product of each unit key with any of the slots.
///
/// Shapes: unit_keys [n_keys, head_dim], slots [n_slots, head_dim] with n_slots >= 1; returns
/// [n_keys].
/// Cost: 2 n_slots n_keys head_dim operations, n_slots rounded up to a multiple of 16. The n_slots
/// x n_keys products are never stored. Source: QUOKA (arXiv 2602.08722), Algorithm 1, lines 9
/// and 10.
Vector best_products(const ConstMatrixView& unit_keys, const Matrix& slots);

/// The same from keys that are not unit vectors yet: each is made one on the way and forgotten, so
/// the keys are read from memory once. Equal to best_products of unit_rows(keys) to the last bit.
///
/// Source: QUOKA (arXiv 2602.08722), Algorithm 1, lines 7, 9 and 10.
Vector best_cosines(const ConstMatrixView& keys, const Matrix& slots);

}  // namespace quoka
