#include "quoka/sweep/config.hpp"

#include <fstream>

#include "quoka/core/error.hpp"
#include "quoka/selection/parameters.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/sweep/small_sweep.hpp"

using namespace quoka;
using quoka::test::setting;

namespace {

SweepConfig config_of(const std::string& toml) {
  std::vector<Setting> settings{setting("capture", {"a.h5"}), setting("out", {"o.h5"})};
  for (Setting& more : parse_settings(toml, "x.toml")) {
    settings.push_back(std::move(more));
  }
  return make_sweep_config(settings);
}

const std::vector<std::string>& axis(const SweepConfig& config, const std::string& name) {
  for (const Axis& axis : config.axes) {
    if (axis.name == name) {
      return axis.values;
    }
  }
  throw std::runtime_error("no axis " + name);
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("defaults are the paper's values", "[sweep][config]") {
  const SweepConfig config = config_of("");
  CHECK(config.axes.size() == parameters().size());
  CHECK(axis(config, "chunk_size") == Texts{"128"});
  CHECK(axis(config, "budget") == Texts{"1024"});
  CHECK(axis(config, "n_sel_queries") == Texts{"16"});
  CHECK(axis(config, "query_rule") == Texts{"lowest_cosine"});
  CHECK(config.layers.empty());
  CHECK(config.grid == GridMode::product);
  CHECK(config.constants == SweepConstants{4, 0, false, false});
}

TEST_CASE("lists over several lines are read whole", "[sweep][config]") {
  const SweepConfig config = config_of(
      "budget = [\n  128,  # a comment\n  \"25%\",\n  \"64\",\n]\nseed = 7\nlayer = [2, \"0\", "
      "2]\n");
  CHECK(axis(config, "budget") == Texts{"128", "25%", "64"});
  CHECK(axis(config, "seed") == Texts{"7"});
  CHECK(config.layers == std::vector<Index>{0, 2});
}

TEST_CASE("numbers in scientific notation are whole if their value is", "[sweep][config]") {
  CHECK(axis(config_of("budget = 1e3"), "budget") == Texts{"1000"});
  CHECK_THROWS_WITH(config_of("chunk_size = 1.5"),
                    test::contains("x.toml:1:14") && test::contains("1.5"));
}

TEST_CASE("a later setting replaces an earlier one", "[sweep][config]") {
  const std::vector<Setting> settings{setting("capture", {"a.h5"}), setting("out", {"o.h5"}),
                                      setting("budget", {"1", "2"}), setting("budget", {"3"})};
  CHECK(axis(make_sweep_config(settings), "budget") == Texts{"3"});
}

TEST_CASE("an unknown key names its place and the nearest key", "[sweep][config]") {
  CHECK_THROWS_AS(config_of("\n n_sel_query = 4"), ConfigError);
  CHECK_THROWS_WITH(config_of("\n n_sel_query = 4"), test::contains("x.toml:2:2") &&
                                                         test::contains("\"n_sel_query\"") &&
                                                         test::contains("n_sel_queries"));
  CHECK(nearest_key("query_agregation") == "query_aggregation");
  CHECK(nearest_key("captures") == "capture");
}

TEST_CASE("faults of a file name line and column", "[sweep][config]") {
  const auto [toml, place] = GENERATE(table<std::string, std::string>({
      {"budget = 1\nbudget = 2", "x.toml:2:"},
      {"budget = [1, [2]]", "x.toml:1:14"},
      {"budget = [1,\n 0]", "x.toml:2:2"},
      {"budget = []", "x.toml:1:1"},
      {"budget = {a = 1}", "x.toml:1:10"},
      {"[a]\nbudget = 1", "x.toml:1:1"},
      {"budget = ", "x.toml:1:"},
      {"query_rule = 3", "x.toml:1:14"},
      {"out = true", "x.toml:1:7"},
      {"selections = \"yes\"", "x.toml:1:14"},
      {"layer = -1", "x.toml:1:9"},
      {"sink_size = 1.5", "x.toml:1:13"},
      {"grid = [\"product\", \"product\"]", "x.toml:1:1"},
  }));
  INFO(toml);
  CHECK_THROWS_AS(config_of(toml), ConfigError);
  CHECK_THROWS_WITH(config_of(toml), test::contains(place));
}

TEST_CASE("a configuration printed as TOML reads back the same", "[sweep][config]") {
  SweepConfig config = config_of(
      "capture = ['a \"b\"\\.h5', \"t\\tb.h5\", \"12\"]\nlayer = [3, 1]\ngrid = \"one_at_a_time\"\n"
      "budget = [7, \"12.50%\"]\nscore = [\"dot\", \"cosine\"]\nsink_size = 2\nmin_history = 5\n"
      "by_chunk = true\nselections = true\nout = \"r.h5\"");
  const SweepConfig back = make_sweep_config(parse_settings(to_toml(config), "printed"));
  CHECK(back == config);
  CHECK(axis(back, "budget") == Texts{"7", "12.5%"});
  CHECK(back.captures == Texts{"a \"b\"\\.h5", "t\tb.h5", "12"});
}

TEST_CASE("threads are not part of the printed configuration", "[sweep][config]") {
  SweepConfig config = config_of("threads = 3");
  CHECK(config.threads == 3);
  CHECK(to_toml(config) == to_toml(config_of("")));
}

TEST_CASE("a configuration file that cannot be read is refused by name", "[sweep][config]") {
  const test::TempDir folder;
  CHECK_THROWS_WITH(read_settings(folder / "none.toml"), test::contains("none.toml"));
  CHECK_THROWS_AS(read_settings(folder.path()), ConfigError);
  std::ofstream(folder / "x.toml") << "budget = 5\n";
  CHECK(read_settings(folder / "x.toml").front().values.front().text == "5");
}
