#include "quoka/prefill/prefill_chunk.hpp"

#include "quoka/core/error.hpp"
#include "quoka/prefill/best_keys.hpp"
#include "quoka/prefill/key_scores.hpp"
#include "quoka/prefill/query_slots.hpp"

namespace quoka {

void check_prefill_rules(const AttentionRules& rules) {
  require<ConfigError>(rules.sliding_window == 0 && rules.attention_chunk == 0,
                       "the layer has sliding_window {} and attention_chunk {} (sparse prefill is "
                       "written for layers that see the whole history); use another layer",
                       rules.sliding_window, rules.attention_chunk);
  require<ConfigError>(rules.alibi == Alibi::none,
                       "the layer has ALiBi slopes (gathered keys have no positions); use another "
                       "layer");
}

GatheredKeys gather_keys(const GroupView& group, std::span<const std::int32_t> keys) {
  const auto n = static_cast<Index>(keys.size());
  GatheredKeys kept{.k = Matrix(n, group.k.cols()), .v = Matrix(n, group.v.cols())};
  for (Index i = 0; i < n; ++i) {
    kept.k.row(i) = group.k.row(keys[static_cast<std::size_t>(i)]);
    kept.v.row(i) = group.v.row(keys[static_cast<std::size_t>(i)]);
  }
  return kept;
}

AttentionOutput attend_kept(const GroupView& group, const AttentionRules& rules, IndexRange rows,
                            const GatheredKeys& kept) {
  BlockedAttention attention(group, rules, rows);
  attention.add_gathered(view(kept.k), view(kept.v));
  attention.add_range({rules.q_offset + rows.begin, rules.q_offset + rows.end});
  return attention.finish();
}

AttentionOutput prefill_chunk(const GroupView& group, const AttentionRules& rules, IndexRange rows,
                              const ConstMatrixView& unit_keys, const PrefillSettings& settings) {
  check_prefill_rules(rules);
  const Index n_history = rules.q_offset + rows.begin;
  if (n_history <= settings.budget) {
    return blocked_attention(group, rules, rows);
  }
  QUOKA_ASSERT(unit_keys.rows() >= n_history && unit_keys.cols() == group.k.cols());
  const Matrix slots = query_slots(group, rows, settings.n_sel_queries);
  const Vector scores = best_products(row_view(unit_keys, {0, n_history}), slots);
  return attend_kept(group, rules, rows, gather_keys(group, best_keys(scores, settings.budget)));
}

}  // namespace quoka
