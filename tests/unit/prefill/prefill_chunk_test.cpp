#include "quoka/prefill/prefill_chunk.hpp"

#include <algorithm>

#include "quoka/attention/sparse.hpp"
#include "quoka/core/error.hpp"
#include "quoka/geometry/unit_rows.hpp"
#include "quoka/prefill/best_keys.hpp"
#include "quoka/prefill/key_scores.hpp"
#include "quoka/prefill/query_slots.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"
#include "support/tiny_layer.hpp"

using namespace quoka;
using quoka::test::near;

namespace {

GroupView group_of(const test::TinyLayer& layer, Index kv_head) {
  const auto h = static_cast<std::size_t>(kv_head);
  GroupView group{.q = {}, .k = view(layer.k[h]), .v = view(layer.v[h]), .kv_head = kv_head};
  const Index size = layer.shape.group_size();
  for (Index head = kv_head * size; head < (kv_head + 1) * size; ++head) {
    group.q.push_back(view(layer.q[static_cast<std::size_t>(head)]));
  }
  return group;
}

/// What the replay keeps under the paper's configuration with these sizes.
std::vector<KeptKeys> replay_selections(const test::TinyLayer& layer, Index chunk_size,
                                        const PrefillSettings& settings) {
  SelectorConfig config;
  config.chunk_size = chunk_size;
  config.budget = Budget::from_keys(settings.budget);
  config.n_sel_queries = settings.n_sel_queries;
  return replay_layer(layer.input(), {{config}}, {.selections = true}).front().kept;
}

/// Output of one chunk from the replay's keys, row by row.
Matrix sparse_output(const test::TinyLayer& layer, const GroupView& group, IndexRange rows,
                     const std::vector<std::int32_t>& kept) {
  Matrix out(group.group_size() * rows.size(), group.v.cols());
  for (Index head = 0; head < group.group_size(); ++head) {
    std::vector<std::int32_t> visible = kept;
    for (Index i = 0; i < rows.size(); ++i) {
      visible.push_back(static_cast<std::int32_t>(layer.rules.q_offset + rows.begin + i));
      out.row(head * rows.size() + i) =
          sparse_row(group, layer.rules, head, rows.begin + i, visible);
    }
  }
  return out;
}

}  // namespace

TEST_CASE("prefill keeps the keys of the replay and gives its sparse output",
          "[prefill][prefill_chunk]") {
  const auto [shape, chunk_size, settings] =
      GENERATE(table<test::TinyShape, Index, PrefillSettings>({
          {{.n_q_heads = 6, .n_kv_heads = 2, .n_tokens = 531, .k_head_dim = 24, .v_head_dim = 10},
           64,
           {.budget = 50, .n_sel_queries = 16}},
          // One query head per KV head, slots that fill no tile, history before the capture.
          {{.n_q_heads = 2, .n_kv_heads = 2, .n_tokens = 101, .k_head_dim = 17, .q_offset = 333},
           50,
           {.budget = 7, .n_sel_queries = 5}},
          // More slots than rows: all rows score, and the last chunk has three.
          {{.n_q_heads = 8, .n_kv_heads = 1, .n_tokens = 243, .k_head_dim = 64},
           40,
           {.budget = 1, .n_sel_queries = 41}},
      }));
  test::TinyLayer layer = test::tiny_layer(shape, 11);
  layer.rules.sinks.assign(static_cast<std::size_t>(layer.shape.n_q_heads), 0.5F);

  const std::vector<KeptKeys> selections = replay_selections(layer, chunk_size, settings);
  REQUIRE(selections.size() > 2);
  for (const KeptKeys& replayed : selections) {
    const GroupView group = group_of(layer, replayed.kv_head);
    const Index begin = replayed.chunk_begin - layer.rules.q_offset;
    const IndexRange rows{begin, std::min(begin + chunk_size, layer.shape.n_tokens)};
    const Matrix unit_keys = unit_rows(row_view(group.k, {0, replayed.chunk_begin})).rows;

    const Matrix slots = query_slots(group, rows, settings.n_sel_queries);
    CHECK(best_keys(best_products(view(unit_keys), slots), settings.budget) ==
          replayed.key_indices);
    const auto report = near(prefill_chunk(group, layer.rules, rows, view(unit_keys), settings).out,
                             sparse_output(layer, group, rows, replayed.key_indices), 2e-5, 2e-6);
    INFO(report.message);  // about a hundred float32 terms below 4, summed in two orders
    CHECK(report.ok());
  }
}

TEST_CASE("a history within the budget is attended whole", "[prefill][prefill_chunk]") {
  const test::TinyLayer layer = test::tiny_layer({.n_tokens = 90}, 12);
  const GroupView group = group_of(layer, 0);
  const IndexRange rows{60, 90};
  const Matrix none(0, layer.shape.k_head_dim);

  CHECK(prefill_chunk(group, layer.rules, rows, view(none), {.budget = 60}).out ==
        blocked_attention(group, layer.rules, rows).out);
}

TEST_CASE("layers whose keys need a position are refused", "[prefill][prefill_chunk]") {
  const test::TinyLayer layer = test::tiny_layer({}, 13);
  const GroupView group = group_of(layer, 0);
  const Matrix none(0, layer.shape.k_head_dim);
  AttentionRules rules = layer.rules;
  SECTION("window") { rules.sliding_window = 16; }
  SECTION("attention chunk") { rules.attention_chunk = 16; }
  SECTION("alibi") { rules.alibi = Alibi::plain; }

  CHECK_THROWS_AS(prefill_chunk(group, rules, {0, 8}, view(none), {}), ConfigError);
}
