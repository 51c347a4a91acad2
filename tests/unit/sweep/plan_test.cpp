#include "quoka/sweep/plan.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "quoka/core/error.hpp"
#include "quoka/core/sha256.hpp"
#include "quoka/selection/parameters.hpp"
#include "quoka/sweep/estimate.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "support/tiny.hpp"
#include "unit/sweep/small_sweep.hpp"

using namespace quoka;
using quoka::test::setting;

namespace {

struct Fixture {
  test::TempDir folder;
  std::filesystem::path capture = folder / "small.h5";

  Fixture() { test::write_small_capture(capture, 3); }
  [[nodiscard]] SweepPlan plan(const std::vector<Setting>& more = {}) const {
    return make_plan(test::small_config(capture, folder / "o.h5", more));
  }
};

std::set<std::string> ids_of(const SweepPlan& plan) {
  std::set<std::string> ids;
  for (const Unit& unit : missing_units(plan, {})) {
    ids.insert(unit.cell_ids.begin(), unit.cell_ids.end());
  }
  return ids;
}

}  // namespace

TEST_CASE("a plan names captures layers and configurations", "[sweep][plan]") {
  const Fixture fixture;
  const SweepPlan plan = fixture.plan({setting("layer", {"2", "0"})});
  REQUIRE(plan.captures.size() == 1);
  CHECK(plan.captures[0].stem == "small");
  CHECK(plan.captures[0].sha256 == sha256_of_file(fixture.capture));
  REQUIRE(plan.captures[0].layers.size() == 2);
  CHECK(plan.captures[0].layers[0].layer_idx == 0);
  CHECK(plan.captures[0].layers[1].layer_idx == 2);
  CHECK(plan.captures[0].layers[1].kind == "full");
  CHECK(plan.configs.size() == 4);
  CHECK(plan.config_ids[3] == config_id(plan.configs[3]));
}

TEST_CASE("faults of captures and layers stop the plan", "[sweep][plan]") {
  const Fixture fixture;
  CHECK_THROWS_AS(fixture.plan({setting("capture", {"none.h5"})}), FormatError);
  CHECK_THROWS_WITH(fixture.plan({setting("layer", {"0", "9"})}),
                    test::contains("layer 9") && test::contains("0, 1, 2"));
  CHECK_THROWS_AS(fixture.plan({setting("layer", {"9"})}), ConfigError);
  CHECK_THROWS_AS(
      fixture.plan({setting("capture", {fixture.capture.string(), "elsewhere/small.h5"})}),
      ConfigError);
}

TEST_CASE("two captures with the same content are refused", "[sweep][plan]") {
  const Fixture fixture;
  const auto copy = fixture.folder / "copy.h5";
  std::filesystem::copy(fixture.capture, copy);
  const Setting both = setting("capture", {fixture.capture.string(), copy.string()});
  CHECK_THROWS_AS(fixture.plan({both}), ConfigError);
  CHECK_THROWS_WITH(fixture.plan({both}), test::contains("same content"));
}

TEST_CASE("a unit holds the missing cells of one layer", "[sweep][plan]") {
  const Fixture fixture;
  const SweepPlan plan = fixture.plan();
  const auto all = missing_units(plan, {});
  REQUIRE(all.size() == 3);
  CHECK(all[1].configs == std::vector<std::size_t>{0, 1, 2, 3});
  const auto rest =
      missing_units(plan, {all[1].cell_ids[0], all[1].cell_ids[2], all[0].cell_ids[0],
                           all[0].cell_ids[1], all[0].cell_ids[2], all[0].cell_ids[3]});
  REQUIRE(rest.size() == 2);
  CHECK(rest[0].place.layer == 1);
  CHECK(rest[0].configs == std::vector<std::size_t>{1, 3});
  CHECK(rest[0].id != all[1].id);
  CHECK(rest[1].id == all[2].id);
  CHECK(unit_configs(plan, rest[0])[1] == plan.configs[3]);
  CHECK(unit_name(plan, rest[0]) == "small layer 1");
}

TEST_CASE("P37 a cell is named by everything its values depend on", "[sweep][plan]") {
  const Fixture fixture;
  const SweepPlan plan = fixture.plan();
  const auto ids = ids_of(plan);
  CHECK(ids.size() == 12);
  CHECK(ids_of(fixture.plan()) == ids);
  CHECK(ids_of(fixture.plan({setting("threads", {"7"})})) == ids);
  CHECK(ids_of(fixture.plan({setting("seed", {"3"})})) == ids);  // nothing random in this grid
  const auto shares_cells = [&](const std::vector<Setting>& more) {
    const auto others = ids_of(fixture.plan(more));
    return std::ranges::any_of(others, [&](const std::string& id) { return ids.contains(id); });
  };
  CHECK(shares_cells({setting("budget", {"8", "9"})}));
  CHECK_FALSE(shares_cells({setting("budget", {"9"})}));
  CHECK_FALSE(shares_cells({setting("sink_size", {"3"})}));
  CHECK_FALSE(shares_cells({setting("min_history", {"1"})}));
  CHECK_FALSE(shares_cells({setting("by_chunk", {"true"})}));
  CHECK_FALSE(shares_cells({setting("selections", {"true"})}));
  // The same content under another name is the same; other content under the same name is not.
  std::filesystem::copy(fixture.capture, fixture.folder / "copy.h5");
  CHECK(ids_of(fixture.plan({setting("capture", {(fixture.folder / "copy.h5").string()})})) == ids);
  test::write_small_capture(fixture.capture, 3, 1);
  CHECK_FALSE(shares_cells({}));
}

TEST_CASE("the plan hash changes with the plan only", "[sweep][plan]") {
  const Fixture fixture;
  const std::string hash = fixture.plan().hash;
  CHECK(fixture.plan({setting("out", {"elsewhere.h5"})}).hash == hash);
  CHECK(fixture.plan({setting("layer", {"0"})}).hash != hash);
  CHECK(fixture.plan({setting("budget", {"4"})}).hash != hash);
  CHECK(fixture.plan({setting("sink_size", {"3"})}).hash != hash);
}

TEST_CASE("axes of captures with different layers and heads leave gaps", "[sweep][plan]") {
  const Fixture fixture;
  const auto tiny = fixture.folder / "tiny.h5";
  CaptureLayer wide = test::tiny_layer(3);
  wide.shape.n_q_heads = 6;
  wide.rules.sinks.resize(6, 0.0F);
  wide.rules.sliding_window = 3;
  test::write_tiny_capture(tiny, {wide});
  const ResultsAxes axes =
      results_axes(fixture.plan({setting("capture", {fixture.capture.string(), tiny.string()}),
                                 setting("budget", {"4", "12.5%"})}));
  CHECK(axes.layers == std::vector<Index>{0, 1, 2, 3});
  CHECK(axes.n_q_heads == 6);
  CHECK(axes.facts(0, 2).present);
  CHECK_FALSE(axes.facts(0, 3).present);
  CHECK_FALSE(axes.facts(1, 0).present);
  CHECK(axes.facts(1, 3).kind == "window");
  CHECK(axes.facts(1, 3).shape == wide.shape);
  CHECK(axes.parameter("budget")->values[1] == "12.5%");
  CHECK(axes.parameter("budget_keys")->values[1].empty());
  CHECK(axes.parameter("budget_percent")->values[1] == "12.5");
  CHECK(axes.parameter("score")->values[0] == "cosine");
  CHECK(axes.parameter("score")->values[2].empty());  // oracle
}

TEST_CASE("a dry run counts what is left to do", "[sweep][estimate]") {
  const Fixture fixture;
  const SweepPlan plan = fixture.plan();
  auto units = missing_units(plan, {});
  CHECK(unit_flops(plan, units[0]) > 0);
  units.pop_back();
  const std::string text = describe_work(plan, units, 2);
  CHECK_THAT(text, test::contains("configurations  4\n"));
  CHECK_THAT(text, test::contains("2 of 3"));
  CHECK_THAT(text, test::contains("8 of 12"));
  CHECK_THAT(text, test::contains("20 GFLOP/s per thread, 2 threads"));
}
