#include "quoka/attention/softmax.hpp"

#include <cmath>
#include <limits>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"

using namespace quoka;
using quoka::test::near;

namespace {

// A handful of float32 operations per element: a few units of 2^-24.
constexpr double few_roundings = 1e-6;

Eigen::RowVectorXf row_of(std::initializer_list<float> values) {
  Eigen::RowVectorXf row(static_cast<Index>(values.size()));
  std::copy(values.begin(), values.end(), row.begin());
  return row;
}

}  // namespace

TEST_CASE("equal logits give equal probabilities that sum to one", "[attention][softmax]") {
  Eigen::RowVectorXf row = row_of({3, 3, 3, 3});

  CHECK(to_probs({}, row) == 0.0F);
  const auto report = near(row, row_of({0.25F, 0.25F, 0.25F, 0.25F}), few_roundings, 0);
  INFO(report.message);
  CHECK(report.ok());
}

TEST_CASE("P02 a sink logit is in the denominator only", "[attention][softmax]") {
  Eigen::RowVectorXf row = row_of({0, 0});

  // exp(0) twice and exp(ln 2): 1/4, 1/4 and 2/4.
  const float sink = to_probs({.sink = std::log(2.0)}, row);
  CHECK(std::abs(static_cast<double>(sink) - 0.5) < few_roundings);
  CHECK(std::abs(static_cast<double>(row.sum()) - 0.5) < few_roundings);
}

TEST_CASE("P02 a very large sink takes nearly all probability without overflow",
          "[attention][softmax]") {
  Eigen::RowVectorXf row = row_of({1, 2});

  CHECK(to_probs({.sink = 80.0}, row) == 1.0F);
  CHECK(row.sum() < 1e-30F);
}

TEST_CASE("P01 the cap comes after the scale and before the bias", "[attention][softmax]") {
  Eigen::RowVectorXf row = row_of({12, -12});

  // 2 tanh(12 * 0.5 / 2) = 1.990110; bias 0.25 * (5 - 6) and 0.25 * (6 - 6). (Python math.tanh)
  to_logits({.scale = 0.5, .softcap = 2, .alibi_slope = 0.25}, 6, 5, row);
  const auto report = near(row, row_of({1.740110F, -1.990110F}), 2e-6, 0);
  INFO(report.message);
  CHECK(report.ok());
}

TEST_CASE("a scaled bias is multiplied by the softmax scale too", "[attention][softmax]") {
  AttentionRules rules{.scale = 0.5, .alibi = Alibi::plain, .alibi_slopes = {0.1F, 0.4F}};
  CHECK(logit_rule(rules, 1).alibi_slope == static_cast<double>(0.4F));

  rules.alibi = Alibi::scaled;
  CHECK(logit_rule(rules, 1).alibi_slope == static_cast<double>(0.4F) * 0.5);
}

TEST_CASE("logits that are not finite are refused", "[attention][softmax]") {
  Eigen::RowVectorXf infinite = row_of({0, std::numeric_limits<float>::infinity()});
  Eigen::RowVectorXf nan = row_of({0, std::numeric_limits<float>::quiet_NaN(), 1});

  CHECK_THROWS_AS(to_probs({}, infinite), FormatError);
  CHECK_THROWS_AS(to_probs({}, nan), FormatError);
}
