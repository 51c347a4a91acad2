#pragma once

#include "quoka/core/attention_rules.hpp"

namespace quoka {

/// Absolute positions of the keys that the query at query_pos may see: a half-open range that ends
/// with the query's own position.
///
/// Causal limit, window (the query itself counts) and attention chunk all cut a range, so their
/// intersection is one; both ends never fall as query_pos grows.
IndexRange visible_keys(const AttentionRules& rules, Index query_pos);

/// The same seen from the key: the rows among `rows` (tokens of the layer) that may see it, counted
/// from rows.begin.
IndexRange rows_that_see(const AttentionRules& rules, IndexRange rows, Index key_pos);

}  // namespace quoka
