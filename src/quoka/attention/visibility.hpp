#pragma once

#include "quoka/core/attention_rules.hpp"

namespace quoka {

/// Absolute positions of the keys that the query at query_pos may see: a half-open range that ends
/// with the query's own position.
///
/// Causal limit, window (the query itself counts) and attention chunk all cut a range, so their
/// intersection is one; both ends never fall as query_pos grows.
IndexRange visible_keys(const AttentionRules& rules, Index query_pos);

}  // namespace quoka
