#include "quoka/check/compare.hpp"

#include <limits>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "unit/check/flat_results.hpp"

using namespace quoka;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

Profile profile_of(const Results& results, LayerGrouping grouping = LayerGrouping::depth) {
  ProfileOptions options;
  options.grouping = grouping;
  options.metrics = {"mass_recall_mean", "out_rel_l2_mean", "density"};
  options.tolerances = {"mass_recall_mean=0.125", "out_rel_l2_mean=0.125", "density=0.125"};
  return make_profile(results, options);
}

/// Outcome of the early layers' row of configuration aa when both its heads have these values.
Outcome outcome_with(const std::string& metric, float expected, float found) {
  Results before = test::flat_results();
  test::set_heads(before, metric, 0, 0, expected, expected);
  Results after = test::flat_results();
  test::set_heads(after, metric, 0, 0, found, found);
  const Comparison comparison = compare(profile_of(before), after);
  Outcome outcome = Outcome::equal;
  for (const ComparedRow& compared : comparison.rows) {
    const ProfileRow& row = compared.row;
    if (row.metric == metric && row.config == "aa" && row.group == "early") {
      outcome = compared.outcome;
    } else {
      CHECK(compared.outcome == Outcome::equal);
    }
  }
  CHECK(comparison.n_failures() == (is_failure(outcome) ? 1 : 0));
  return outcome;
}

std::string notes_of(const Comparison& comparison) {
  std::string text;
  for (const std::string& note : comparison.notes) {
    text += note + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("results pass the check against their own profile", "[check][compare]") {
  const Results results = test::flat_results();
  const Comparison comparison = compare(make_profile(results, {}), results);
  CHECK(comparison.rows.size() == 3 * 2 * 7);
  CHECK(comparison.count(Outcome::equal) == std::ssize(comparison.rows));
  CHECK_THAT(notes_of(comparison), test::contains("those of the profile"));
  CHECK_THAT(notes_of(comparison), !test::contains("NOT"));
}

TEST_CASE("the direction of the metric decides what is worse", "[check][compare]") {
  CHECK(outcome_with("out_rel_l2_mean", 0.5F, 0.75F) == Outcome::worse);
  CHECK(outcome_with("out_rel_l2_mean", 0.5F, 0.25F) == Outcome::improved);
  CHECK(outcome_with("mass_recall_mean", 0.5F, 0.25F) == Outcome::worse);
  CHECK(outcome_with("mass_recall_mean", 0.5F, 0.75F) == Outcome::improved);
  CHECK(outcome_with("density", 0.5F, 0.75F) == Outcome::changed);
  CHECK(outcome_with("density", 0.5F, 0.25F) == Outcome::changed);
}

TEST_CASE("a difference of the tolerance itself is within it", "[check][compare]") {
  CHECK(outcome_with("out_rel_l2_mean", 0.5F, 0.625F) == Outcome::equal);
  CHECK(outcome_with("out_rel_l2_mean", 0.5F, 0.626F) == Outcome::worse);
  CHECK(outcome_with("mass_recall_mean", 0.5F, 0.375F) == Outcome::equal);
}

TEST_CASE("P39 no number where one is expected fails and both undefined are equal",
          "[check][compare]") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(outcome_with("out_rel_l2_mean", 0.5F, nan_value) == Outcome::undefined);
  CHECK(outcome_with("out_rel_l2_mean", 0.5F, infinity) == Outcome::undefined);
  CHECK(outcome_with("out_rel_l2_mean", nan_value, nan_value) == Outcome::equal);
  CHECK(outcome_with("out_rel_l2_mean", nan_value, 0.5F) == Outcome::appeared);
}

TEST_CASE("one head that lost its number fails although the mean has one", "[check][compare]") {
  Results after = test::flat_results();
  test::set_heads(after, "density", 1, 2, 0.5F, nan_value);
  const Comparison comparison = compare(profile_of(test::flat_results()), after);
  CHECK(comparison.count(Outcome::undefined) == 1);
  // The other way round a head has a number that had none: nothing is lost.
  CHECK(compare(profile_of(after), test::flat_results()).n_failures() == 0);
}

TEST_CASE("improvements do not fail", "[check][compare]") {
  CHECK(!is_failure(Outcome::improved));
  CHECK(!is_failure(Outcome::appeared));
  CHECK(!is_failure(Outcome::equal));
  for (const Outcome outcome :
       {Outcome::worse, Outcome::changed, Outcome::undefined, Outcome::missing}) {
    CHECK(is_failure(outcome));
  }
}

TEST_CASE("P37 cells that were not computed are missing and named", "[check][compare]") {
  Results after = test::flat_results();
  test::set_heads(after, "n_rows", 0, 1, nan_value, nan_value);
  after.provenance.failed = {{"a", 1, "a reason"}};
  const Comparison comparison = compare(profile_of(test::flat_results()), after);
  CHECK(comparison.count(Outcome::missing) == 3);  // the metrics of (middle, aa)
  CHECK(comparison.n_failures() == 3);
  CHECK_THAT(notes_of(comparison), test::contains("not computed: a layer 1: a reason"));
}

TEST_CASE("layer groups that the results lack are missing", "[check][compare]") {
  const Profile profile = profile_of(test::flat_results(3), LayerGrouping::layer);
  const Comparison fewer = compare(profile, test::flat_results(2));
  CHECK(fewer.count(Outcome::missing) == 2 * 3);  // layer 2: configurations times metrics
  const Comparison more = compare(profile, test::flat_results(4));
  CHECK(more.n_failures() == 0);
  CHECK_THAT(notes_of(more), test::contains("\"layer 3\" is not in the profile"));
}

TEST_CASE("models with other numbers of layers compare by depth", "[check][compare]") {
  Results other = test::flat_results(30);
  other.axes.captures[0] = {"b", "b.h5", "22ee", "model-b"};
  const Comparison comparison = compare(profile_of(test::flat_results(3)), other);
  CHECK(comparison.n_failures() == 0);
  CHECK(comparison.rows.front().found.n_values == 20);  // ten layers of two heads
  const std::string notes = notes_of(comparison);
  CHECK_THAT(notes, test::contains("NOT those of the profile"));
  for (const char* part : {"model-a", "model-b", "11ff", "22ee"}) {
    CHECK_THAT(notes, test::contains(part));
  }
}

TEST_CASE("other layers of the same capture are refused unless layers are named",
          "[check][compare]") {
  const Results results = test::flat_results(3);
  const Results fewer = test::flat_results(2);
  for (const auto grouping :
       {LayerGrouping::depth, LayerGrouping::layer_kind, LayerGrouping::all}) {
    CHECK_THROWS_AS(compare(profile_of(results, grouping), fewer), ConfigError);
  }
  CHECK_NOTHROW(compare(profile_of(results, LayerGrouping::layer), fewer));
}

TEST_CASE("results of other configurations are refused naming what differs", "[check][compare]") {
  Results other = test::flat_results();
  other.axes.config_ids[0] = "cc";
  other.axes.parameters[1].values[0] = "256";
  const Profile profile = profile_of(test::flat_results());
  CHECK_THROWS_AS(compare(profile, other), ConfigError);
  CHECK_THROWS_WITH(compare(profile, other),
                    test::contains("configuration aa") && test::contains("instead of budget=64"));
}

TEST_CASE("configurations that only the results have are noted", "[check][compare]") {
  Profile profile = profile_of(test::flat_results());
  profile.configs.pop_back();
  std::erase_if(profile.rows, [](const ProfileRow& row) { return row.config == "bb"; });
  const Comparison comparison = compare(profile, test::flat_results());
  CHECK(comparison.rows.size() == 3 * 3);
  CHECK(comparison.n_failures() == 0);
  CHECK_THAT(notes_of(comparison), test::contains("1 configurations"));
}

TEST_CASE("other constants are refused", "[check][compare]") {
  const Profile profile = profile_of(test::flat_results());
  Results other = test::flat_results();
  other.constants.sink_size = 3;
  CHECK_THROWS_WITH(compare(profile, other), test::contains("sink_size is 3 in the results and 4"));
  other = test::flat_results();
  other.constants.min_history = 0;
  CHECK_THROWS_WITH(compare(profile, other), test::contains("min_history is 0"));
  CHECK_THROWS_AS(compare(profile, other), ConfigError);
}
