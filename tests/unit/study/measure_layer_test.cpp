#include "quoka/study/measure_layer.hpp"

#include <algorithm>
#include <cmath>

#include "quoka/core/error.hpp"
#include "quoka/geometry/correlation.hpp"
#include "quoka/study/chunk_pass.hpp"
#include "support/catch.hpp"
#include "support/tiny_layer.hpp"

namespace {

using namespace quoka;
using namespace quoka::test;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

struct Study {
  TinyLayer layer;
  StudySettings settings;
  StudySamples samples;
  GeometryTable table;
};

StudyAxes axes_of(const TinyLayer& layer, const StudySettings& settings,
                  const StudySamples& samples) {
  return {.layers = {layer.layer_idx},
          .n_q_heads = layer.shape.n_q_heads,
          .n_kv_heads = layer.shape.n_kv_heads,
          .head_dim = layer.shape.k_head_dim,
          .q_offset = layer.rules.q_offset,
          .n_tokens = layer.shape.n_tokens,
          .chunk_size = settings.rows_per_chunk(layer.shape.n_tokens),
          .query_samples = samples.queries,
          .key_samples = samples.keys};
}

Study study(const TinyLayer& layer, const StudySettings& settings) {
  const StudySamples samples = study_samples(layer.shape, settings);
  GeometryTable table(study_dimensions(axes_of(layer, settings, samples)));
  measure_layer(layer.input(), 0, settings, samples, table);
  return {layer, settings, samples, table};
}

/// Plain loops in double: probabilities of one row on all keys it sees.
std::vector<double> plain_probs(const TinyLayer& layer, Index q_head, Index row) {
  const auto h = static_cast<std::size_t>(q_head);
  const Matrix& k = layer.k[h / static_cast<std::size_t>(layer.shape.group_size())];
  std::vector<double> probs;
  double sum = 0;
  for (Index key = 0; key <= layer.rules.q_offset + row; ++key) {
    double dot = 0;
    for (Index c = 0; c < k.cols(); ++c) {
      dot += static_cast<double>(layer.q[h](row, c)) * static_cast<double>(k(key, c));
    }
    probs.push_back(std::exp(layer.rules.scale * dot));
    sum += probs.back();
  }
  for (double& p : probs) {
    p /= sum;
  }
  return probs;
}

/// Plain loops in double: cosine of a row with the mean of rows [begin, end).
double plain_similarity(const Matrix& q, Index row, Index begin, Index end) {
  double dot = 0;
  double mean_square = 0;
  double row_square = 0;
  for (Index c = 0; c < q.cols(); ++c) {
    double mean = 0;
    for (Index i = begin; i < end; ++i) {
      mean += static_cast<double>(q(i, c));
    }
    const double value = static_cast<double>(q(row, c));
    dot += mean * value;
    mean_square += mean * mean;
    row_square += value * value;
  }
  return dot / std::sqrt(mean_square * row_square);
}

double plain_pearson(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sx += x[i];
    sy += y[i];
    sxx += x[i] * x[i];
    syy += y[i] * y[i];
    sxy += x[i] * y[i];
  }
  return (sxy - sx * sy / n) / std::sqrt((sxx - sx * sx / n) * (syy - sy * sy / n));
}

/// Number of smaller values + (number of equal ones + 1) / 2, by counting.
std::vector<double> plain_ranks(const std::vector<double>& values) {
  std::vector<double> ranks;
  for (const double value : values) {
    const auto below = std::ranges::count_if(values, [&](double v) { return v < value; });
    const auto equal = std::ranges::count(values, value);
    ranks.push_back(static_cast<double>(below) + (static_cast<double>(equal) + 1) / 2);
  }
  return ranks;
}

TEST_CASE("The numbers of figure 2c are those of plain loops", "[study][attention]") {
  const Index q_offset = GENERATE(Index{0}, Index{11});
  const Index chunk_size = GENERATE(Index{16}, Index{0});
  const TinyLayer layer = tiny_layer({.q_offset = q_offset}, 1);
  const Study measured = study(layer, {.chunk_size = chunk_size, .sink_size = 3});
  const Index n = layer.shape.n_tokens;
  const Index chunk = chunk_size == 0 ? n : chunk_size;
  for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
    std::vector<double> s, raw, log;
    for (Index row = 0; row < n; ++row) {
      const std::vector<double> probs = plain_probs(layer, head, row);
      if (probs.size() > 3) {
        const Index begin = row - row % chunk;
        s.push_back(-plain_similarity(layer.q[static_cast<std::size_t>(head)], row, begin,
                                      std::min(begin + chunk, n)));
        raw.push_back(*std::max_element(probs.begin() + 3, probs.end()));
        log.push_back(std::log(raw.back()));
      }
    }
    // Logits are float32 of size below 10: errors of about 1e-6 in the logarithm.
    constexpr double tolerance = 1e-5;
    const auto value = [&](const char* name) { return measured.table.head(name, 0, head)[0]; };
    CHECK(value("similarity_attention_n") == static_cast<double>(s.size()));
    CHECK_THAT(value("similarity_attention_pearson"), WithinAbs(plain_pearson(s, raw), tolerance));
    CHECK_THAT(value("similarity_attention_log_pearson"),
               WithinAbs(plain_pearson(s, log), tolerance));
    CHECK_THAT(value("similarity_attention_spearman"),
               WithinAbs(plain_pearson(plain_ranks(s), plain_ranks(log)), 1e-12));
  }
}

TEST_CASE("Correlations of a chunk are those of its rows alone", "[study][attention]") {
  const TinyLayer layer = tiny_layer({}, 2);
  const Study measured = study(layer, {.chunk_size = 20, .sink_size = 3});
  // Every row is a sample here: sizes are below the default.
  const auto similarity = measured.table.head("query_similarity", 0, 4);
  const auto attention = measured.table.head("query_log_max_attention", 0, 4);
  const auto chunked = measured.table.head("chunk_attention_log_pearson", 0, 4);
  REQUIRE(chunked.size() == 3);
  std::vector<double> s, log;
  for (std::size_t row = 20; row < 40; ++row) {
    s.push_back(-similarity[row]);
    log.push_back(attention[row]);
  }
  CHECK_THAT(chunked[1], WithinAbs(pearson(s, log), 1e-12));
  CHECK(measured.table.head("chunk_attention_n", 0, 4)[0] == 17);  // rows 0 to 2 see sinks only
  CHECK(std::isnan(attention[2]));
  CHECK_FALSE(std::isnan(attention[3]));
}

TEST_CASE("Class profiles are means of plain probabilities", "[study][attention]") {
  const TinyLayer layer = tiny_layer({.n_tokens = 48}, 3);
  const Study measured = study(layer, {.chunk_size = 0, .sink_size = 2});
  const Index head = 5;
  std::vector<std::pair<double, Index>> order;
  for (Index row = 0; row < 48; ++row) {
    order.emplace_back(plain_similarity(layer.q[5], row, 0, 48), row);
  }
  std::ranges::sort(order);
  std::vector<double> on_keys(48, 0.0);  // class 0: the 6 rows with the lowest similarity
  double sinks = 0, effective = 0, effective_share = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    const std::vector<double> probs = plain_probs(layer, head, order[i].second);
    REQUIRE(probs.size() > 2);
    sinks += probs[0] + probs[1];
    const double mass = 1 - probs[0] - probs[1];
    double entropy = 0;
    for (std::size_t key = 2; key < probs.size(); ++key) {
      on_keys[key] += probs[key];
      entropy -= probs[key] / mass * std::log(probs[key] / mass);
    }
    effective += std::exp(entropy);
    effective_share += std::exp(entropy) / static_cast<double>(probs.size() - 2);
  }
  // Float32 probabilities: relative error about 1e-6.
  const auto of_class_0 = [&](const char* name) { return measured.table.head(name, 0, head)[0]; };
  CHECK(of_class_0("class_n_queries") == 6);
  CHECK_THAT(of_class_0("class_sink_share"), WithinRel(sinks / 6, 1e-5));
  CHECK_THAT(of_class_0("class_effective_keys"), WithinRel(effective / 6, 1e-5));
  CHECK_THAT(of_class_0("class_effective_share"), WithinRel(effective_share / 6, 1e-5));
  const auto share = measured.table.head("class_key_share", 0, head);  // 48 keys: a bin each
  for (std::size_t key = 0; key < 48; ++key) {
    CHECK_THAT(share[key], WithinAbs(on_keys[key] / 6, 1e-6));
  }
  std::vector<double> best(on_keys.begin() + 2, on_keys.end());
  std::ranges::sort(best, std::greater<>());
  double total = 0, half = 0;
  for (std::size_t i = 0; i < best.size(); ++i) {
    total += best[i];
    half += i < 23 ? best[i] : 0;  // 50 % of 46 keys
  }
  CHECK_THAT(measured.table.head("class_top_share", 0, head)[4], WithinRel(half / total, 1e-5));
}

TEST_CASE("Similarity classes are eighths by rank with ties to the lower row", "[study][chunks]") {
  VectorD similarity(16);
  for (Index row = 0; row < 16; ++row) {
    similarity[row] = row < 4 ? 0.5 : static_cast<double>(-row);
  }
  const std::vector<Index> classes = similarity_classes(similarity);
  CHECK(classes[15] == 0);
  CHECK(classes[14] == 0);
  CHECK(classes[4] == 5);
  CHECK(std::vector<Index>(classes.begin(), classes.begin() + 4) == std::vector<Index>{6, 6, 7, 7});
}

TEST_CASE("The queries that a chunk keeps are marked", "[study][chunks]") {
  const TinyLayer layer = tiny_layer({}, 4);
  const Study measured = study(layer, {.chunk_size = 20, .n_sel_queries = 5});
  const auto similarity = measured.table.head("query_similarity", 0, 1);
  const auto kept = measured.table.head("query_kept", 0, 1);
  for (const std::size_t begin : {0U, 20U, 40U}) {
    const std::size_t end = std::min<std::size_t>(begin + 20, kept.size());
    for (std::size_t i = begin; i < end; ++i) {
      const auto lower = std::count_if(similarity.begin() + static_cast<Index>(begin),
                                       similarity.begin() + static_cast<Index>(end),
                                       [&](double value) { return value < similarity[i]; });
      CHECK(kept[i] == (lower < 5 ? 1 : 0));
    }
  }
}

TEST_CASE("A key's kept share counts only chunks that had to choose", "[study][chunks]") {
  const TinyLayer layer = tiny_layer({}, 5);  // 53 tokens: histories of 0, 20, 40 keys
  const Study measured =
      study(layer, {.chunk_size = 20, .n_sel_queries = 5, .budget = Budget::from_keys(30)});
  const auto share = measured.table.head("key_kept_share", 0, 1);
  double kept = 0;
  for (std::size_t key = 0; key < 40; ++key) {
    CHECK((share[key] == 0 || share[key] == 1));
    kept += share[key];
  }
  CHECK(kept == 30);
  CHECK(std::isnan(share[40]));  // never in a history
}

TEST_CASE("Theorem 1 is checked on every visible pair of samples", "[study][theorem]") {
  const TinyLayer layer = tiny_layer({.q_offset = 4}, 6);
  const Study measured = study(layer, {.chunk_size = 16});
  const auto value = [&](const char* name) { return measured.table.head(name, 0, 3)[0]; };
  CHECK(value("theorem_n_triples") == 53 * 4 + 53 * 54 / 2);
  CHECK(value("paper_bound_violations") == 0);
  CHECK(value("spherical_bound_violations") == 0);
  CHECK(value("theorem_applies_share") > 0);
  CHECK(value("theorem_applies_share") <= value("theorem_key_negative_share"));
  CHECK(value("spherical_bound_slack_min") >= -1e-9);
  CHECK(value("spherical_bound_slack_mean") < value("paper_bound_slack_mean"));
}

TEST_CASE("Fewer samples are a part of the queries and keys", "[study][samples]") {
  const TinyLayer layer = tiny_layer({}, 7);
  const Study few = study(layer, {.chunk_size = 16, .n_samples = 10});
  const Study all = study(layer, {.chunk_size = 16});
  REQUIRE(few.samples.queries.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    const auto row = static_cast<std::size_t>(few.samples.queries[i]);
    CHECK(few.table.head("query_similarity", 0, 2)[i] ==
          all.table.head("query_similarity", 0, 2)[row]);
  }
  // What needs all rows does not depend on the samples.
  for (const char* name : {"similarity_attention_pearson", "joint_pca_share", "query_norm_mean"}) {
    CHECK(few.table.head(name, 0, 2)[0] == all.table.head(name, 0, 2)[0]);
  }
  CHECK(few.table.head("theorem_n_triples", 0, 2)[0] < 100);
}

TEST_CASE("Coordinates and basis give the rows back", "[study][pca]") {
  const TinyLayer layer = tiny_layer({.k_head_dim = 4}, 8);  // as many channels as components
  const Study measured = study(layer, {.chunk_size = 16});
  const auto basis = measured.table.head("joint_pca_basis", 0, 3);
  const auto queries = measured.table.head("joint_query_coordinates", 0, 3);
  const auto keys = measured.table.head("joint_key_coordinates", 0, 3);
  const auto difference = [&](std::size_t c) {  // query 7 minus key 9, the mean cancels
    double sum = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      sum += (queries[7 * 4 + i] - keys[9 * 4 + i]) * basis[i * 4 + c];
    }
    return sum;
  };
  for (Index c = 0; c < 4; ++c) {
    const double wanted = static_cast<double>(layer.q[3](7, c) - layer.k[1](9, c));
    CHECK_THAT(difference(static_cast<std::size_t>(c)), WithinAbs(wanted, 1e-6));
  }
  const auto share = measured.table.head("joint_pca_share", 0, 3);
  CHECK_THAT(share[0] + share[1] + share[2] + share[3], WithinAbs(1, 1e-12));
}

TEST_CASE("Threads change nothing", "[study][threads]") {
  const TinyLayer layer = tiny_layer({.n_q_heads = 6, .n_kv_heads = 3}, 9);
  const Study one = study(layer, {.chunk_size = 16, .n_threads = 1});
  const Study many = study(layer, {.chunk_size = 16, .n_threads = 5});
  for (const GeometryVariable& variable : geometry_variables()) {
    const auto first = one.table.values(variable.name);
    const auto second = many.table.values(variable.name);
    INFO(variable.name);
    CHECK(std::ranges::equal(first, second, [](double a, double b) {
      return a == b || (std::isnan(a) && std::isnan(b));
    }));
  }
}

TEST_CASE("Every variable of a full layer has numbers", "[study][variables]") {
  const Study measured =
      study(tiny_layer({.n_tokens = 300}, 10), {.chunk_size = 64, .budget = Budget::from_keys(20)});
  for (const GeometryVariable& variable : geometry_variables()) {
    const auto values = measured.table.values(variable.name);
    INFO(variable.name);
    CHECK_FALSE(std::ranges::all_of(values, [](double value) { return std::isnan(value); }));
    CHECK(std::ranges::none_of(values, [](double value) { return std::isinf(value); }));
  }
}

TEST_CASE("Zero vectors and a single token leave numbers undefined but do not fail",
          "[study][edges]") {
  TinyLayer layer = tiny_layer({.n_tokens = 1}, 11);
  const Study single = study(layer, {});
  CHECK(std::isnan(single.table.head("similarity_attention_pearson", 0, 0)[0]));
  CHECK(single.table.head("similarity_attention_n", 0, 0)[0] == 0);

  layer = tiny_layer({}, 12);
  layer.q[2].setZero();
  layer.k[1].row(5).setZero();
  const Study zeros = study(layer, {.chunk_size = 16});
  CHECK(zeros.table.head("theorem_n_triples", 0, 2)[0] == 0);
  CHECK(std::isnan(zeros.table.head("theorem_applies_share", 0, 2)[0]));
  CHECK(std::isnan(zeros.table.head("similarity_attention_pearson", 0, 2)[0]));
  CHECK(zeros.table.head("query_norm_max", 0, 2)[0] == 0);
  // Key 5 is seen by rows 5 to 52: 48 pairs fewer than all 53 * 54 / 2.
  CHECK(zeros.table.head("theorem_n_triples", 0, 3)[0] == 53 * 54 / 2 - 48);
}

TEST_CASE("Logits that overflow are an error and what stops a study passes through",
          "[study][errors]") {
  TinyLayer layer = tiny_layer({}, 13);
  const StudySettings settings{.chunk_size = 16};
  const StudySamples samples = study_samples(layer.shape, settings);
  GeometryTable table(study_dimensions(axes_of(layer, settings, samples)));
  const auto stop = [] { throw Interrupted("stop"); };
  CHECK_THROWS_AS(measure_layer(layer.input(), 0, settings, samples, table, stop), Interrupted);
  layer.q[0].row(9).setConstant(1e30F);
  layer.k[0].row(3).setConstant(1e30F);
  CHECK_THROWS_AS(measure_layer(layer.input(), 0, settings, samples, table), FormatError);
  table.forget(0);
  CHECK(std::ranges::all_of(table.values("key_norm"), [](double v) { return std::isnan(v); }));
}

TEST_CASE("A window limits the keys of interest and the triples", "[study][attention]") {
  TinyLayer layer = tiny_layer({}, 14);
  layer.rules.sliding_window = 8;
  const Study measured = study(layer, {.chunk_size = 16});
  // Rows 0 to 6 see 1 to 7 keys, the other 46 see 8.
  CHECK(measured.table.head("theorem_n_triples", 0, 0)[0] == 28 + 46 * 8);
  const auto effective = measured.table.head("class_effective_keys", 0, 0);
  CHECK(std::ranges::all_of(effective, [](double keys) { return keys >= 1 && keys <= 8 + 1e-6; }));
}

}  // namespace
