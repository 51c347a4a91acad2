// The reference itself, on inputs small enough to work out by hand: the answers are in the
// comments.

#include "reference/naive_replay.hpp"
#include "support/catch.hpp"
#include "support/tiny_layer.hpp"

namespace quoka {
namespace {

using naive::Positions;
using naive::Row;

constexpr double rounding = 1e-12;  // a few operations in double

void check_row(const Row& actual, const Row& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK_THAT(actual[i], Catch::Matchers::WithinAbs(expected[i], rounding));
  }
}

/// One head of width 1, scale 1, all queries 1: exp(logit) of key j is exp(k_j).
naive::Layer column_layer(const Row& keys, const Row& values) {
  naive::Layer layer;
  naive::Block q(keys.size(), Row{1});
  naive::Block k;
  naive::Block v;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    k.push_back({keys[i]});
    v.push_back({values[i]});
  }
  layer.q = {q};
  layer.k = {k};
  layer.v = {v};
  return layer;
}

/// exp(logits) 1, 2, 3 and values 6, 12, 18.
naive::Layer one_two_three() {
  return column_layer({0, std::log(2.0), std::log(3.0)}, {6, 12, 18});
}

/// exp(logits) 1, 2, 1, 1 and values 4, 8, 12, 20.
naive::Layer four_keys() { return column_layer({0, std::log(2.0), 0, 0}, {4, 8, 12, 20}); }

Row dense_probs(const naive::Layer& layer, Index row) {
  return naive::attend(layer, 0, row, naive::visible_keys(layer, row)).p;
}

}  // namespace

TEST_CASE("reference: softmax over the visible keys", "[replay][reference]") {
  const naive::Layer layer = one_two_three();
  check_row(dense_probs(layer, 0), {1, 0, 0});
  check_row(dense_probs(layer, 1), {1.0 / 3, 2.0 / 3, 0});
  check_row(dense_probs(layer, 2), {1.0 / 6, 2.0 / 6, 3.0 / 6});
  // 6/6 + 12 * 2/6 + 18 * 3/6 = 14
  check_row(naive::attend(layer, 0, 2, {0, 1, 2}).out, {14});
  // over keys 0 and 2 only: (6 + 3 * 18) / 4 = 15
  check_row(naive::attend(layer, 0, 2, {0, 2}).out, {15});
  check_row(naive::attend(layer, 0, 2, {}).out, {0});
}

TEST_CASE("reference: a sink logit is in the denominator only", "[replay][reference]") {
  naive::Layer layer = one_two_three();
  layer.rules.sinks = {std::log(6.0F)};
  const auto attended = naive::attend(layer, 0, 2, {0, 1, 2});
  // exp(sink) = 6 doubles the denominator 6; log(6) is float32, hence the wider tolerance.
  CHECK_THAT(attended.sink_probability, Catch::Matchers::WithinAbs(0.5, 1e-6));
  CHECK_THAT(attended.out[0], Catch::Matchers::WithinAbs(7.0, 1e-5));
}

TEST_CASE("reference: window counts the query itself and attention chunks cut",
          "[replay][reference]") {
  naive::Layer layer = one_two_three();
  layer.rules.sliding_window = 2;
  check_row(dense_probs(layer, 2), {0, 2.0 / 5, 3.0 / 5});
  layer.rules.sliding_window = 0;
  layer.rules.attention_chunk = 2;
  check_row(dense_probs(layer, 1), {1.0 / 3, 2.0 / 3, 0});
  check_row(dense_probs(layer, 2), {0, 0, 1});
}

TEST_CASE("reference: softcap comes after the scale and before ALiBi", "[replay][reference]") {
  naive::Layer layer = one_two_three();
  layer.rules.softcap = 1;
  // tanh(ln 2) = (2 - 1/2) / (2 + 1/2) = 0.6 and tanh(ln 3) = (3 - 1/3) / (3 + 1/3) = 0.8
  CHECK_THAT(naive::logit(layer, 0, 2, 1), Catch::Matchers::WithinAbs(0.6, rounding));
  CHECK_THAT(naive::logit(layer, 0, 2, 2), Catch::Matchers::WithinAbs(0.8, rounding));
  layer.rules.alibi_slopes = {0.5F};
  layer.rules.alibi = Alibi::plain;  // distance of key 1 to row 2 is 1
  CHECK_THAT(naive::logit(layer, 0, 2, 1), Catch::Matchers::WithinAbs(0.1, rounding));
  layer.rules.alibi = Alibi::scaled;
  layer.rules.softcap = 0;
  layer.rules.scale = 2;  // 2 ln 2 - 2 * 0.5
  CHECK_THAT(naive::logit(layer, 0, 2, 1),
             Catch::Matchers::WithinAbs(2 * std::log(2.0) - 1, rounding));
}

TEST_CASE("reference: query rules on four rows", "[replay][reference]") {
  naive::Layer layer;
  layer.q = {{{1, 0}, {1, 0}, {0, 1}, {-1, 0}}};
  layer.k = {{{1, 0}, {1, 0}, {0, 1}, {-1, 0}}};
  layer.v = layer.k;
  SelectorConfig config;
  naive::Gap gap;
  const auto kept = [&](QueryRule rule, Index n) {
    config.query_rule = rule;
    config.n_sel_queries = n;
    return naive::kept_rows(layer, {0}, 0, {0, 4}, config, gap);
  };
  // The mean is (1/4, 1/4): cosines 0.707 for rows 0 to 2 and -0.707 for row 3.
  CHECK(kept(QueryRule::lowest_cosine, 2) == Positions{3, 0});
  CHECK(kept(QueryRule::highest_cosine, 2) == Positions{0, 1});
  // From row 3: rows 0 and 1 have cosine -1, row 2 has 0. Then row 1 equals row 0, row 2 does not.
  CHECK(kept(QueryRule::farthest_point, 3) == Positions{3, 0, 2});
  CHECK(kept(QueryRule::first, 2) == Positions{0, 1});
  CHECK(kept(QueryRule::last, 2) == Positions{2, 3});
  // floor(0.5 * 4 / 3) = 0, floor(1.5 * 4 / 3) = 2, floor(2.5 * 4 / 3) = 3
  CHECK(kept(QueryRule::stride, 3) == Positions{0, 2, 3});
  CHECK(kept(QueryRule::all, 1) == Positions{0, 1, 2, 3});
  CHECK(kept(QueryRule::lowest_cosine, 4) == Positions{0, 1, 2, 3});
  layer.q[0][1] = {0, 3};
  CHECK(kept(QueryRule::largest_norm, 2) == Positions{1, 0});
}

TEST_CASE("reference: the mean query of unit rows differs from that of raw rows",
          "[replay][reference]") {
  naive::Layer layer;
  layer.q = {{{3, 0}, {0, 1}}};
  check_row(naive::mean_query(layer, 0, {0, 2}, QueryMean::raw), {1.5, 0.5});
  check_row(naive::mean_query(layer, 0, {0, 2}, QueryMean::normalized), {0.5, 0.5});
}

TEST_CASE("reference: P11 heads of a group that disagree", "[replay][reference]") {
  // Heads ask for e1 and e2; keys are e1, e2 and their sum (cosine 0.707 to each).
  naive::Layer layer;
  layer.q = {{{0, 0}, {0, 0}, {0, 0}, {2, 0}}, {{0, 0}, {0, 0}, {0, 0}, {0, 5}}};
  layer.k = {{{1, 0}, {0, 1}, {1, 1}, {0, 0}}};
  layer.v = layer.k;
  const naive::Dense dense = naive::dense_attention(layer);
  const naive::Place place{layer, dense, {3, 4}, 0};
  SelectorConfig config;
  naive::Gap gap;
  const double half_root = std::sqrt(0.5);
  check_row(naive::candidate_scores(place, {0, 1, 2}, config, gap), {0.5, 0.5, half_root});
  config.head_aggregation = HeadAggregation::max_after;
  check_row(naive::candidate_scores(place, {0, 1, 2}, config, gap), {1, 1, half_root});
  config.head_aggregation = HeadAggregation::mean_first;
  config.score = Score::dot;  // mean raw query (1, 2.5)
  check_row(naive::candidate_scores(place, {0, 1, 2}, config, gap), {1, 2.5, 3.5});
}

TEST_CASE("reference: forced keys come first and count once", "[replay][reference]") {
  const auto five = naive::with_forced(5, 2, 2, {2, 4, 1, 3, 0});
  CHECK(five.order == Positions{0, 1, 4, 3, 2});
  CHECK(five.n_forced == 4);
  const auto three = naive::with_forced(3, 2, 2, {2, 1, 0});
  CHECK(three.order == Positions{0, 1, 2});
  CHECK(three.n_forced == 3);
}

TEST_CASE("reference: percentages round up on the decimal as written", "[replay][reference]") {
  const auto keys = [](const char* text, Index n) {
    return naive::requested_keys(Budget::parse(text), n);
  };
  CHECK(keys("10%", 30) == 3);
  CHECK(keys("12.5%", 17) == 3);   // 2.125
  CHECK(keys("0.7%", 1000) == 7);  // binary 0.007 * 1000 is above 7
  CHECK(keys("0.000001%", 5) == 1);
  CHECK(keys("100%", 7) == 7);
  CHECK(keys("12", 5) == 12);
}

TEST_CASE("reference: random draws are those of SplitMix64 chained", "[replay][reference]") {
  // From a few lines of Python with whole numbers modulo 2^64.
  CHECK(naive::random_draw(7, 3, 128, 2, 5) == 0x1a82f4853abadf12ULL);
  CHECK(naive::random_draw(0, 0, 0, 0, 0) == 0x78ae5a9a6b5fd45eULL);
}

TEST_CASE("reference: a whole replay worked out by hand", "[replay][reference]") {
  const naive::Layer layer = four_keys();
  SelectorConfig config;
  config.chunk_size = 2;
  config.budget = Budget::from_keys(1);
  config.score = Score::dot;
  ReplaySettings settings;
  settings.sink_size = 1;
  const std::vector<NeedleGroup> needles = {{{{3, 4}}, {{0, 2}}}};
  const auto cell = naive::replay(layer, naive::dense_attention(layer), needles, config, settings);
  // The first chunk has no history; the second keeps key 1 of {0, 1}.
  REQUIRE(cell.kept.size() == 1);
  CHECK(cell.kept[0].keys == Positions{1});
  auto values = cell.values[0];
  const auto check = [&](const char* name, double expected) {
    CAPTURE(name);
    CHECK_THAT(values[name], Catch::Matchers::WithinAbs(expected, rounding));
  };
  // Row 2 has p = 1/4 2/4 1/4 and attends {1, 2}; row 3 has p = 1/5 2/5 1/5 1/5 and attends {1, 2,
  // 3}.
  check("mass_recall_worst", 0.75);
  check("mass_recall_p50", 0.775);   // between 0.75 and 0.8
  check("mass_recall_p95", 0.7975);  // 0.75 + 0.95 * 0.05
  check("mass_recall_history_mean", 2.0 / 3);
  check("mass_recall_no_sink_mean", 1);  // key 1 alone
  check("kl_worst", std::log(4.0 / 3));
  // Outputs 8 and 52/5; sparse (2*8 + 12)/3 = 28/3 and (2*8 + 12 + 20)/4 = 12.
  check("out_rel_l2_worst", 1.0 / 6);
  check("out_rel_l2_mean", (1.0 / 6 + 2.0 / 13) / 2);
  check("out_max_abs_worst", 8.0 / 5);
  check("out_cos_mean", 1);
  check("out_rel_l2_n_valid", 2);
  check("oracle_ratio", 1);
  check("topk_overlap", 1);
  check("density_history", 0.5);  // 2 of 4 pairs
  check("density", 5.0 / 7);
  check("cut_margin", std::log(2.0));
  check("needle_key_recall", 0.5);
  check("needle_mass_recall", 2.0 / 3);  // row 3: 2/5 of 3/5
  check("n_rows", 4);
  check("n_rows_active", 2);
  check("n_chunks_active", 1);
  check("n_candidates", 2);
  check("keys_kept", 1);
  check("sink_mass", (1 + 1.0 / 3 + 1.0 / 4 + 1.0 / 5) / 4);
}

TEST_CASE("reference: a row without a visible kept key is empty", "[replay][reference]") {
  // Both keys compete, key 1 wins: row 0 sees nothing, row 1 has p = 1/3 2/3 and attends {1}.
  const naive::Layer layer = column_layer({0, std::log(2.0)}, {4, 8});
  SelectorConfig config;
  config.budget = Budget::from_keys(1);
  config.score = Score::dot;
  config.candidates = Candidates::cache;
  const auto cell = naive::replay(layer, naive::dense_attention(layer), {}, config, {});
  auto values = cell.values[0];
  CHECK(values["n_empty_rows"] == 1);
  CHECK(values["n_rows_active"] == 2);
  CHECK(values["mass_recall_n_valid"] == 1);
  CHECK_THAT(values["mass_recall_mean"], Catch::Matchers::WithinAbs(2.0 / 3, rounding));
  CHECK(values["mass_recall_history_n_valid"] == 0);
  CHECK(std::isnan(values["mass_recall_history_mean"]));
  CHECK(std::isnan(values["density_history"]));
  CHECK_THAT(values["density"], Catch::Matchers::WithinAbs(1.0 / 3, rounding));
}

}  // namespace quoka
