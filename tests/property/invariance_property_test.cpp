// Maps of the vectors that must not change a selection, and maps that must.

#include "reference/compare.hpp"
#include "support/bits.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"

namespace quoka::test {
namespace {

ReplaySettings with_selections() {
  ReplaySettings settings;
  settings.selections = true;
  return settings;
}

std::vector<std::vector<std::int32_t>> kept_sets(const TinyLayer& layer,
                                                 const std::string& config) {
  const auto results =
      replay_layer(layer.input(), std::vector{config_from(config)}, with_selections());
  std::vector<std::vector<std::int32_t>> sets;
  for (const KeptKeys& kept : results[0].kept) {
    sets.push_back(kept.key_indices);
  }
  return sets;
}

const std::vector<std::string> cosine_configs = {"selector=quoka",
                                                 "query_aggregation=mean",
                                                 "head_aggregation=max_after",
                                                 "query_rule=farthest_point",
                                                 "query_rule=stride",
                                                 "query_scope=per_group",
                                                 "candidates=cache",
                                                 "query_mean=normalized",
                                                 "selector=keydiff"};

/// The same configurations and results for both layers: sets equal, values equal within rounding.
void check_unchanged(const TinyLayer& before, const TinyLayer& after) {
  const naive::Layer reference = naive::to_layer(before.input());
  const naive::Dense dense = naive::dense_attention(reference);
  const auto configs = mixed_configs();
  const auto left = replay_layer(before.input(), configs, with_selections());
  const auto right = replay_layer(after.input(), configs, with_selections());
  int n_checked = 0;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (naive::replay(reference, dense, {}, configs[i], {}).gap.smallest < clear_gap) {
      continue;  // too close to call in float32
    }
    ++n_checked;
    INFO(canonical_text(configs[i]));
    for (std::size_t j = 0; j < left[i].kept.size(); ++j) {
      CHECK(left[i].kept[j].key_indices == right[i].kept[j].key_indices);
    }
    const auto report =
        near(right[i].values, left[i].values, relative_tolerance, absolute_tolerance);
    INFO(report.message);
    CHECK(report.ok());
  }
  CHECK(n_checked > 25);
}

}  // namespace

TEST_CASE("permuting the channels of q and k changes nothing", "[property][invariance]") {
  const TinyLayer layer = tiny_layer({}, 131);
  TinyLayer permuted = layer;
  const std::vector<Index> order = {3, 0, 7, 1, 6, 2, 5, 4};
  for (std::size_t c = 0; c < order.size(); ++c) {
    for (std::size_t head = 0; head < layer.q.size(); ++head) {
      permuted.q[head].col(static_cast<Index>(c)) = layer.q[head].col(order[c]);
    }
    for (std::size_t head = 0; head < layer.k.size(); ++head) {
      permuted.k[head].col(static_cast<Index>(c)) = layer.k[head].col(order[c]);
    }
  }
  check_unchanged(layer, permuted);
}

TEST_CASE("rotating q and k by one orthogonal map changes nothing", "[property][invariance]") {
  const TinyLayer layer = tiny_layer({}, 132);
  TinyLayer rotated = layer;
  for (auto* tensor : {&rotated.q, &rotated.k}) {
    for (Matrix& matrix : *tensor) {
      for (Index c = 0; c + 1 < matrix.cols(); ++c) {  // 3-4-5 rotations of neighbouring channels
        const Vector a = matrix.col(c);
        const Vector b = matrix.col(c + 1);
        matrix.col(c) = 0.6F * a - 0.8F * b;
        matrix.col(c + 1) = 0.8F * a + 0.6F * b;
      }
    }
  }
  check_unchanged(layer, rotated);
}

TEST_CASE("scaling keys by powers of two changes dot but not cosine selection",
          "[property][invariance]") {
  const TinyLayer layer = tiny_layer({}, 133);
  TinyLayer scaled = layer;
  for (Matrix& k : scaled.k) {
    for (Index row = 0; row < k.rows(); ++row) {
      k.row(row) *= static_cast<float>(std::ldexp(1.0, static_cast<int>(row % 7) - 3));
    }
  }
  for (const std::string& config : cosine_configs) {
    CAPTURE(config);
    CHECK((kept_sets(layer, config) == kept_sets(scaled, config)));
  }
  CHECK((kept_sets(layer, "score=dot") != kept_sets(scaled, "score=dot")));
}

TEST_CASE("very short and very long vectors keep their direction", "[property][invariance]") {
  // Squares of 2^-70 and of 2^66 leave the range of float32, the vectors do not.
  const TinyLayer layer = tiny_layer({}, 139);
  TinyLayer scaled = layer;
  const int exponent = GENERATE(-70, 66);
  CAPTURE(exponent);
  const auto factor = static_cast<float>(std::ldexp(1.0, exponent));
  for (Matrix& k : scaled.k) {
    k *= factor;
  }
  for (Matrix& q : scaled.q) {
    q /= factor;
  }
  for (const std::string& config : cosine_configs) {
    CAPTURE(config);
    CHECK((kept_sets(layer, config) == kept_sets(scaled, config)));
  }
}

TEST_CASE("scaling all queries of a head changes neither rows nor cosine selection",
          "[property][invariance]") {
  const TinyLayer layer = tiny_layer({}, 134);
  TinyLayer scaled = layer;
  for (std::size_t head = 0; head < scaled.q.size(); ++head) {
    scaled.q[head] *= static_cast<float>(std::ldexp(1.0, static_cast<int>(head) - 2));
  }
  for (const std::string& config : cosine_configs) {
    CAPTURE(config);
    CHECK((kept_sets(layer, config) == kept_sets(scaled, config)));
  }
  CHECK((kept_sets(layer, "score=dot") != kept_sets(scaled, "score=dot")));
}

TEST_CASE("P05 the softmax scale changes neither cosine nor dot selection",
          "[property][invariance]") {
  const TinyLayer layer = tiny_layer({}, 135);
  TinyLayer scaled = layer;
  scaled.rules.scale = 1.0 / 64;
  for (const std::string config : {"score=cosine", "score=dot", "selector=keydiff"}) {
    CAPTURE(config);
    CHECK((kept_sets(layer, config) == kept_sets(scaled, config)));
  }
  CHECK((kept_sets(layer, "selector=oracle") != kept_sets(scaled, "selector=oracle")));
}

TEST_CASE("scaling values scales absolute but not relative errors", "[property][invariance]") {
  const TinyLayer layer = tiny_layer({}, 136);
  TinyLayer scaled = layer;
  for (Matrix& v : scaled.v) {
    v *= 8.0F;
  }
  const std::vector configs = {config_from("budget=5")};
  const Matrix before = replay_layer(layer.input(), configs, {})[0].values;
  const Matrix after = replay_layer(scaled.input(), configs, {})[0].values;
  const Index rel_l2 = cell_column(RowMetric::out_rel_l2, RowStatistic::p95);
  const Index max_abs = cell_column(RowMetric::out_max_abs, RowStatistic::p95);
  for (Index head = 0; head < before.rows(); ++head) {
    CHECK(after(head, rel_l2) == before(head, rel_l2));
    CHECK(after(head, max_abs) == 8.0F * before(head, max_abs));
  }
}

TEST_CASE("group size 1 equals plain multi-head attention", "[property][groups]") {
  const TinyLayer both = tiny_layer({.n_q_heads = 2, .n_kv_heads = 2}, 137);
  std::vector<SelectorConfig> configs;
  for (const SelectorConfig& config : mixed_configs()) {
    const bool draws = config.selector == SelectorKind::random ||
                       config.query_rule == QueryRule::random;  // draws name the head
    if (!draws) {
      configs.push_back(config);
    }
  }
  const auto together = replay_layer(both.input(), configs, {});
  for (std::size_t head = 0; head < 2; ++head) {
    TinyLayer one = both;
    one.shape.n_q_heads = 1;
    one.shape.n_kv_heads = 1;
    one.q = {both.q[head]};
    one.k = {both.k[head]};
    one.v = {both.v[head]};
    const auto alone = replay_layer(one.input(), configs, {});
    for (std::size_t i = 0; i < configs.size(); ++i) {
      INFO(canonical_text(configs[i]) << " head " << head);
      CHECK(same_bits(together[i].values.row(static_cast<Index>(head)), alone[i].values));
    }
  }
}

TEST_CASE("identical heads of a group act as one head", "[property][groups]") {
  TinyLayer one = tiny_layer({.n_q_heads = 1, .n_kv_heads = 1}, 138);
  TinyLayer group = one;
  group.shape.n_q_heads = 4;  // a power of two: the mean of four equal rows is exact
  group.q.assign(4, one.q[0]);
  for (const std::string config :
       {"selector=quoka", "head_aggregation=mean_after", "head_aggregation=max_after",
        "query_scope=per_group", "score=softmax", "score=dot", "selector=oracle",
        "selector=keydiff", "query_rule=farthest_point query_scope=per_group"}) {
    CAPTURE(config);
    CHECK((kept_sets(one, config) == kept_sets(group, config)));
  }
}

}  // namespace quoka::test
