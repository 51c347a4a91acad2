#include "quoka/check/profile.hpp"

#include <cmath>
#include <limits>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "unit/check/flat_results.hpp"

using namespace quoka;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

ProfileOptions one_metric(const std::string& metric, const std::string& tolerance = "") {
  ProfileOptions options;
  options.metrics = {metric};
  if (!tolerance.empty()) {
    options.tolerances = {tolerance};
  }
  return options;
}

}  // namespace

TEST_CASE("a profile has a row per group and configuration and metric", "[check][profile]") {
  const Profile profile = make_profile(test::flat_results(), {});
  CHECK(profile.rows.size() == 3 * 2 * 7);
  CHECK(profile.sink_size == 4);
  CHECK(profile.min_history == 9);
  CHECK(profile.program_version == "0.1.0");
  CHECK(profile.captures == std::vector<ProfileCapture>{{"model-a", "11ff", {0, 1, 2}}});
  CHECK(profile.configs == std::vector<ProfileConfig>{{"aa", "selector=quoka budget=64"},
                                                      {"bb", "selector=quoka budget=128"}});
}

TEST_CASE("a row holds its group alone", "[check][profile]") {
  Results results = test::flat_results();
  test::set_heads(results, "out_rel_l2_mean", 1, 2, 0.125F, 0.25F);
  const Profile profile = make_profile(results, one_metric("out_rel_l2_mean"));
  REQUIRE(profile.rows.size() == 6);
  const ProfileRow& row = profile.rows.back();
  CHECK(row.group == "late");
  CHECK(row.config == "bb");
  CHECK(row.expected == 0.1875);
  CHECK(row.tolerance == 0.00939);  // 1e-5 + 5 % of 0.1875 = 0.009385, to three digits
  CHECK(row.n_values == 2);
  CHECK(profile.rows.front().expected == 0.5);
}

TEST_CASE("tolerances are absolute or relative to the expected value", "[check][profile]") {
  const Results results = test::flat_results();
  const auto tolerance = [&](const std::string& setting) {
    return make_profile(results, one_metric("kl_mean", setting)).rows.front().tolerance;
  };
  CHECK(tolerance("kl_mean=0.02") == 0.02);
  CHECK(tolerance("kl_mean=10%") == 0.05);
  CHECK(tolerance("kl_mean=0") == 0);
}

TEST_CASE("a value without a number in any head is expected to have none", "[check][profile]") {
  Results results = test::flat_results(1);
  test::set_heads(results, "needle_key_recall", 0, 0, nan_value, nan_value);
  const ProfileRow row = make_profile(results, one_metric("needle_key_recall")).rows.front();
  CHECK(std::isnan(row.expected));
  CHECK(row.tolerance == 0);
  CHECK(row.n_values == 0);
  CHECK(row.n_undefined == 2);
}

TEST_CASE("options of a profile that make no sense are refused", "[check][profile]") {
  const Results results = test::flat_results();
  for (const std::string tolerance :
       {"kl_mean", "kl_mean=", "kl_mean=-1", "kl_mean=nan", "kl_mean=1e999", "kl_mean=1x",
        "kl_mean=%", "out_cos_mean=0.1"}) {
    INFO(tolerance);
    CHECK_THROWS_AS(make_profile(results, one_metric("kl_mean", tolerance)), ConfigError);
  }
  CHECK_THROWS_AS(make_profile(results, one_metric("recall")), ConfigError);
  ProfileOptions twice;
  twice.metrics = {"kl_mean", "kl_mean"};
  CHECK_THROWS_AS(make_profile(results, twice), ConfigError);
}

TEST_CASE("P37 results of an unfinished sweep make no profile", "[check][profile]") {
  Results results = test::flat_results();
  test::set_heads(results, "n_rows", 1, 2, nan_value, nan_value);
  CHECK_THROWS_WITH(make_profile(results, {}), test::contains("1 of 6 cells"));
}

TEST_CASE("labels hold the parameters that vary", "[check][profile]") {
  // The oracle has no query_rule: one value among those that have it is no difference.
  const std::vector<ProfileConfig> configs{{"aa", "selector=quoka budget=64 query_rule=first"},
                                           {"bb", "selector=oracle budget=64"}};
  const auto labels = config_labels(configs);
  CHECK(labels.at("aa") == "aa selector=quoka");
  CHECK(labels.at("bb") == "bb selector=oracle");
  CHECK(config_labels(std::span(configs).first(1)).at("aa") == "aa");
}
