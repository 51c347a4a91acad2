#include "quoka/attention/blocked.hpp"

#include <cmath>

#include "quoka/attention/dense.hpp"
#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"
#include "support/tiny_layer.hpp"

using namespace quoka;
using quoka::test::near;

namespace {

/// The layer's first group: views of tensors that the layer keeps.
GroupView first_group(const test::TinyLayer& layer, Index group_size) {
  GroupView group{.q = {}, .k = view(layer.k[0]), .v = view(layer.v[0]), .kv_head = 0};
  for (Index head = 0; head < group_size; ++head) {
    group.q.push_back(view(layer.q[static_cast<std::size_t>(head)]));
  }
  return group;
}

}  // namespace

TEST_CASE("blocked attention equals dense attention for every rule and row block",
          "[attention][blocked]") {
  const test::TinyLayer layer =
      test::tiny_layer({.n_tokens = 530, .k_head_dim = 24, .v_head_dim = 8, .q_offset = 70}, 5);
  AttentionRules rules;
  rules.q_offset = 70;
  rules.scale = 0.4;
  SECTION("causal") {}
  SECTION("window") { rules.sliding_window = 37; }
  SECTION("attention chunk") { rules.attention_chunk = 100; }
  SECTION("softcap") { rules.softcap = 2.5; }
  SECTION("sinks") { rules.sinks = {0.5F, 40.0F, -3.0F, 0, 0, 0}; }
  SECTION("alibi") {
    rules.alibi = Alibi::plain;
    rules.alibi_slopes = {0.1F, 0.5F, 0.02F, 0, 0, 0};
  }
  const GroupView group = first_group(layer, layer.shape.group_size());

  for (const IndexRange rows : {IndexRange{0, 530}, IndexRange{1, 2}, IndexRange{400, 529}}) {
    const DenseChunk dense = dense_chunk(group, rules, rows);
    const AttentionOutput blocked = blocked_attention(group, rules, rows);
    // Sums of up to 530 float32 terms below 4 in two orders; typical outputs are near 1.
    const auto report = near(blocked.out, dense.out, 2e-5, 2e-6);
    INFO(report.message);
    CHECK(report.ok());
    // Both share their softmax and products; this path has its own.
    for (Index head = 0; head < group.group_size(); ++head) {
      const Index lane = head * rows.size() + rows.size() / 2;
      const auto row_report =
          near(blocked.out.row(lane),
               dense_row_float64(group, rules, head, rows.begin + rows.size() / 2).transpose(),
               2e-5, 2e-6);
      INFO(row_report.message);
      CHECK(row_report.ok());
    }
  }
}

TEST_CASE("the log sum of exponentials is that of a plain double loop", "[attention][blocked]") {
  const test::TinyLayer layer = test::tiny_layer({.n_tokens = 300, .k_head_dim = 16}, 6);
  AttentionRules rules;
  rules.scale = 0.3;
  rules.sinks = {1.5F, 1.5F, 1.5F, 1.5F, 1.5F, 1.5F};
  const GroupView group = first_group(layer, 1);

  const AttentionOutput blocked = blocked_attention(group, rules, {0, 300});
  for (Index row = 0; row < 300; ++row) {
    double sum = std::exp(1.5);
    for (Index key = 0; key <= row; ++key) {
      sum +=
          std::exp(0.3 * group.q[0].row(row).cast<double>().dot(group.k.row(key).cast<double>()));
    }
    CHECK(std::abs(static_cast<double>(blocked.lse[row]) - std::log(sum)) < 1e-5);
  }
}

TEST_CASE("history gathered in another order and the own chunk give dense attention",
          "[attention][blocked]") {
  const test::TinyLayer layer = test::tiny_layer({.n_tokens = 400, .k_head_dim = 16}, 7);
  const GroupView group = first_group(layer, layer.shape.group_size());
  const Matrix k = layer.k[0].topRows(300).colwise().reverse();
  const Matrix v = layer.v[0].topRows(300).colwise().reverse();

  BlockedAttention attention(group, {.scale = 0.25}, {300, 400});
  attention.add_gathered(view(k), view(v));
  attention.add_range({300, 400});
  const auto report = near(attention.finish().out,
                           blocked_attention(group, {.scale = 0.25}, {300, 400}).out, 2e-5, 2e-6);
  INFO(report.message);
  CHECK(report.ok());
}

TEST_CASE("products that overflow to infinity or NaN are refused by both passes",
          "[attention][blocked]") {
  Matrix q = Matrix::Constant(1, 2, 3e38F);
  Matrix k = q;
  SECTION("infinity") {}
  SECTION("NaN") { k(0, 1) = -3e38F; }
  const GroupView group{.q = {view(q)}, .k = view(k), .v = view(k), .kv_head = 0};

  CHECK_THROWS_AS(blocked_attention(group, {}, {0, 1}), FormatError);
  CHECK_THROWS_AS(dense_chunk(group, {}, {0, 1}), FormatError);
}

TEST_CASE("keys whose products all overflow downwards are refused, not attended as NaN",
          "[attention][blocked]") {
  Matrix k = Matrix::Constant(400, 2, -3e38F);
  k.bottomRows(100).setZero();
  const Matrix q = Matrix::Constant(1, 2, 3e38F);
  const GroupView group{.q = {view(q)}, .k = view(k), .v = view(k), .kv_head = 0};

  CHECK_THROWS_AS(blocked_attention(group, {.q_offset = 399}, {0, 1}), FormatError);
}
