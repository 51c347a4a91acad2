// The engine against the slow reference on sizes that are not round.

#include "quoka/replay/replay.hpp"
#include "reference/compare.hpp"
#include "support/catch.hpp"

namespace quoka::test {
TEST_CASE("P10 group ratios on both sides of the number of KV heads", "[replay][shapes]") {
  const auto [n_q_heads, n_kv_heads] =
      GENERATE(table<Index, Index>({{1, 1}, {3, 3}, {7, 1}, {6, 2}, {4, 2}, {14, 2}, {8, 4}}));
  CAPTURE(n_q_heads, n_kv_heads);
  check_equal(tiny_layer({.n_q_heads = n_q_heads, .n_kv_heads = n_kv_heads, .n_tokens = 37}, 11),
              mixed_configs());
}

TEST_CASE("P10 query head h reads KV head h div group size", "[replay][shapes]") {
  // KV head j has the single output value j + 1: each dense output, hence each error, names it. The
  // kept key of value 0 makes the sparse output differ.
  TinyLayer layer =
      tiny_layer({.n_q_heads = 6, .n_kv_heads = 3, .n_tokens = 4, .v_head_dim = 1}, 12);
  for (Index kv_head = 0; kv_head < 3; ++kv_head) {
    layer.v[static_cast<std::size_t>(kv_head)].setConstant(static_cast<float>(kv_head + 1));
    layer.v[static_cast<std::size_t>(kv_head)](0, 0) = 0.0F;
  }
  ReplaySettings settings;
  settings.by_chunk = true;
  // Rows 2 and 3 keep key 0 of {0, 1}: their outputs change in proportion to the head's value.
  const auto result = replay_layer(
      layer.input(),
      std::vector{config_from("chunk_size=2 budget=1 selector=sink_recent keep_first=1")},
      settings)[0];
  const naive::Layer reference = naive::to_layer(layer.input());
  for (Index head = 0; head < 6; ++head) {
    double largest = 0;
    for (Index row = 2; row < 4; ++row) {
      naive::Positions kept = naive::visible_keys(reference, row);
      kept.erase(kept.begin() + 1);
      const double dense =
          naive::attend(reference, head, row, naive::visible_keys(reference, row)).out[0];
      const double sparse = naive::attend(reference, head, row, kept).out[0];
      largest = std::max(largest, std::abs(dense - sparse));
    }
    const float worst =
        result.values(head, cell_column(RowMetric::out_max_abs, RowStatistic::worst));
    CHECK_THAT(static_cast<double>(worst), Catch::Matchers::WithinAbs(largest, absolute_tolerance));
  }
}

TEST_CASE("any number of tokens down to one", "[replay][shapes]") {
  const Index n_tokens = GENERATE(1, 2, 15, 16, 17, 33, 64, 65);
  CAPTURE(n_tokens);
  check_equal(tiny_layer({.n_tokens = n_tokens}, 21), mixed_configs());
}

TEST_CASE("P18 any chunk size with and without history before the capture", "[replay][shapes]") {
  const Index q_offset = GENERATE(0, 1, 13);
  const std::string chunk_size = GENERATE("1", "2", "3", "7", "39", "40", "41");
  CAPTURE(q_offset, chunk_size);
  const std::string added = "chunk_size=" + chunk_size + " chunk_offset=0" +
                            (chunk_size == "1" ? "" : " n_sel_queries=2");
  check_equal(
      tiny_layer({.n_q_heads = 2, .n_kv_heads = 1, .n_tokens = 40, .q_offset = q_offset}, 22),
      mixed_configs(added));
}

TEST_CASE("chunk offsets shift every boundary", "[replay][shapes]") {
  const std::string offset = GENERATE("1", "6", "15");
  check_equal(tiny_layer({.n_q_heads = 2, .n_kv_heads = 1, .q_offset = 9}, 23),
              mixed_configs("chunk_size=16 chunk_offset=" + offset));
}

TEST_CASE("decoding is chunk size 1 after a long history", "[replay][shapes]") {
  const Index n_tokens = GENERATE(1, 5);
  check_equal(
      tiny_layer({.n_q_heads = 4, .n_kv_heads = 2, .n_tokens = n_tokens, .q_offset = 60}, 24),
      mixed_configs("chunk_size=1 chunk_offset=0"));
}

TEST_CASE("P05 key and value widths may differ", "[replay][shapes]") {
  const auto [k_head_dim, v_head_dim] =
      GENERATE(table<Index, Index>({{1, 1}, {2, 9}, {24, 16}, {17, 3}}));
  CAPTURE(k_head_dim, v_head_dim);
  check_equal(tiny_layer({.n_tokens = 45, .k_head_dim = k_head_dim, .v_head_dim = v_head_dim}, 25),
              mixed_configs());
}

TEST_CASE("a longer layer with many heads", "[replay][shapes]") {
  check_equal(tiny_layer({.n_q_heads = 4, .n_kv_heads = 2, .n_tokens = 301, .k_head_dim = 16}, 26),
              {config_from("chunk_size=64 n_sel_queries=8 budget=40"),
               config_from("chunk_size=64 n_sel_queries=8 budget=25% score=dot"),
               config_from("chunk_size=100 selector=oracle budget=17"),
               config_from("chunk_size=64 selector=random budget=40"),
               config_from("chunk_size=64 candidates=cache budget=70 selector=keydiff")});
}

}  // namespace quoka::test
