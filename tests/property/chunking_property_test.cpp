// Dense attention does not depend on how the prompt is cut into chunks.

#include "quoka/attention/dense.hpp"
#include "quoka/attention/sparse.hpp"
#include "quoka/attention/visibility.hpp"
#include "reference/compare.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"

namespace quoka::test {
namespace {

/// Outputs are means of values below 1 with float32 weights: Dk, keys and exp cost a few 1e-6.
constexpr double float_noise = 2e-5;

GroupView group_view(const TinyLayer& layer, Index kv_head) {
  const auto i = static_cast<std::size_t>(kv_head);
  GroupView group{{}, view(layer.k[i]), view(layer.v[i]), kv_head};
  const Index size = layer.shape.group_size();
  for (Index head = kv_head * size; head < (kv_head + 1) * size; ++head) {
    group.q.push_back(view(layer.q[static_cast<std::size_t>(head)]));
  }
  return group;
}

TinyLayer layer_with_rules(int variant) {
  TinyLayer layer =
      tiny_layer({.n_q_heads = 6, .n_kv_heads = 2, .n_tokens = 43, .q_offset = 6}, 101);
  if (variant == 1) {
    layer.rules.sliding_window = 8;
  } else if (variant == 2) {
    layer.rules.attention_chunk = 10;
  } else if (variant == 3) {
    layer.rules.softcap = 2;
    layer.rules.sinks.assign(6, 1.0F);
  } else if (variant == 4) {
    layer.rules.alibi = Alibi::plain;
    layer.rules.alibi_slopes = {0.5F, 0.3F, 0.2F, 0.1F, 0.05F, 0.0F};
  }
  return layer;
}

}  // namespace

TEST_CASE("P18 P26 dense attention in chunks equals one pass", "[property][dense]") {
  const Index chunk_size = GENERATE(1, 3, 7, 16, 42, 43);
  const TinyLayer layer = layer_with_rules(GENERATE(0, 1, 2, 3, 4));
  const Index n_tokens = layer.shape.n_tokens;
  for (Index kv_head = 0; kv_head < 2; ++kv_head) {
    const GroupView group = group_view(layer, kv_head);
    const DenseChunk whole = dense_chunk(group, layer.rules, {0, n_tokens});
    for (Index begin = 0; begin < n_tokens; begin += chunk_size) {
      const IndexRange rows{begin, std::min(n_tokens, begin + chunk_size)};
      const DenseChunk part = dense_chunk(group, layer.rules, rows);
      for (Index head = 0; head < group.group_size(); ++head) {
        const auto report =
            near(part.out.middleRows(head * rows.size(), rows.size()),
                 whole.out.middleRows(head * n_tokens + begin, rows.size()), 0.0, float_noise);
        INFO("chunk at " << begin << " head " << head << ": " << report.message);
        CHECK(report.ok());
      }
    }
  }
}

TEST_CASE("P04 P18 masked probabilities are exactly 0 and visible ones are not",
          "[property][dense]") {
  const TinyLayer layer = layer_with_rules(GENERATE(0, 1, 2));
  const DenseChunk chunk = dense_chunk(group_view(layer, 1), layer.rules, {5, 30});
  for (Index lane = 0; lane < chunk.probs.cols(); ++lane) {
    const Index query_pos = layer.rules.q_offset + chunk.rows.begin + lane % chunk.rows.size();
    for (Index key = 0; key < chunk.keys.size(); ++key) {
      const bool visible = lane < chunk.n_lanes() &&
                           naive::is_visible(layer.rules, query_pos, chunk.keys.begin + key);
      CHECK((chunk.probs(key, lane) > 0) == visible);
    }
  }
}

TEST_CASE("P20 a dense row does not depend on other rows", "[property][dense]") {
  TinyLayer layer = layer_with_rules(0);
  const IndexRange rows{10, 30};
  const Matrix before = dense_chunk(group_view(layer, 0), layer.rules, rows).out;
  for (Index head = 0; head < 3; ++head) {
    layer.q[static_cast<std::size_t>(head)].row(25).setConstant(2.0F);
  }
  const Matrix after = dense_chunk(group_view(layer, 0), layer.rules, rows).out;
  for (Index row = 0; row < before.rows(); ++row) {
    CAPTURE(row);
    CHECK((before.row(row).array() == after.row(row).array()).all() == (row % 20 != 15));
  }
}

TEST_CASE("attending all visible keys equals dense", "[property][dense]") {
  const TinyLayer layer = layer_with_rules(GENERATE(0, 1, 2, 3, 4));
  const GroupView group = group_view(layer, 1);
  const Index n_tokens = layer.shape.n_tokens;
  const DenseChunk dense = dense_chunk(group, layer.rules, {0, n_tokens});
  for (Index head = 0; head < group.group_size(); ++head) {
    for (Index row = 0; row < n_tokens; ++row) {
      const IndexRange range = visible_keys(layer.rules, layer.rules.q_offset + row);
      std::vector<std::int32_t> keys(static_cast<std::size_t>(range.size()));
      std::iota(keys.begin(), keys.end(), static_cast<std::int32_t>(range.begin));
      const auto report = near(sparse_row(group, layer.rules, head, row, keys),
                               dense.out.row(head * n_tokens + row), 0.0, float_noise);
      INFO("head " << head << " row " << row << ": " << report.message);
      CHECK(report.ok());
    }
  }
}

TEST_CASE("P26 sink mass does not depend on the chunking", "[property][dense]") {
  const TinyLayer layer = layer_with_rules(GENERATE(0, 3));
  const Index column = cell_column(CellCount::sink_mass);
  const std::vector configs = {config_from("chunk_size=1"), config_from("chunk_size=7"),
                               config_from("chunk_size=16 chunk_offset=5"),
                               config_from("chunk_size=100")};
  const auto results = replay_layer(layer.input(), configs, {});
  for (const CellResult& result : results) {
    const auto report =
        near(result.values.col(column), results[0].values.col(column), 0.0, float_noise);
    INFO(report.message);
    CHECK(report.ok());
  }
}

}  // namespace quoka::test
