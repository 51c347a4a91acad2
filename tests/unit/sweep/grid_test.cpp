#include "quoka/sweep/grid.hpp"

#include "quoka/core/error.hpp"
#include "quoka/selection/parameters.hpp"
#include "support/catch.hpp"
#include "unit/sweep/small_sweep.hpp"

using namespace quoka;
using quoka::test::setting;

namespace {

std::vector<SelectorConfig> grid_of(std::vector<Setting> settings) {
  settings.push_back(setting("capture", {"a.h5"}));
  settings.push_back(setting("out", {"o.h5"}));
  return make_grid(make_sweep_config(settings));
}

std::vector<std::string> values_of(const std::vector<SelectorConfig>& configs,
                                   const std::string& name) {
  std::vector<std::string> values;
  for (const SelectorConfig& config : configs) {
    values.push_back(effective_value(config, *find_parameter(name)));
  }
  return values;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a grid without lists is the paper's configuration", "[sweep][grid]") {
  CHECK(grid_of({}) == std::vector<SelectorConfig>{canonical(SelectorConfig{})});
}

TEST_CASE("a product has every combination in the order given", "[sweep][grid]") {
  const auto grid = grid_of({setting("budget", {"9", "3"}), setting("score", {"dot", "cosine"})});
  CHECK(values_of(grid, "budget") == Texts{"9", "9", "3", "3"});
  CHECK(values_of(grid, "score") == Texts{"dot", "cosine", "dot", "cosine"});
}

TEST_CASE("points that differ only where it does not matter are one", "[sweep][grid]") {
  const auto grid =
      grid_of({setting("selector", {"quoka", "oracle"}), setting("budget", {"9", "3"}),
               setting("score", {"dot", "cosine"}), setting("seed", {"0", "1"})});
  CHECK(values_of(grid, "selector") ==
        Texts{"quoka", "quoka", "quoka", "quoka", "oracle", "oracle"});
  CHECK(values_of(grid, "seed") == Texts(6, ""));
}

TEST_CASE("repeated values are one configuration", "[sweep][grid]") {
  CHECK(grid_of({setting("budget", {"9", "09", "9"})}).size() == 1);
}

TEST_CASE("one at a time varies each axis around the first values", "[sweep][grid]") {
  const auto grid = grid_of({setting("grid", {"one_at_a_time"}), setting("budget", {"9", "3", "5"}),
                             setting("score", {"dot", "cosine"})});
  CHECK(values_of(grid, "budget") == Texts{"9", "3", "5", "9"});
  CHECK(values_of(grid, "score") == Texts{"dot", "dot", "dot", "cosine"});
}

TEST_CASE("values that do not fit together are refused", "[sweep][grid]") {
  CHECK_THROWS_AS(grid_of({setting("chunk_size", {"8"}), setting("chunk_offset", {"8"})}),
                  ConfigError);
}

TEST_CASE("a product beyond the limit is refused before it is made", "[sweep][grid]") {
  Texts values;
  for (int i = 1; i <= 101; ++i) {
    values.push_back(std::to_string(i));
  }
  const std::vector<Setting> settings{setting("budget", values), setting("n_sel_queries", values),
                                      setting("keep_first", values),
                                      setting("keep_recent", values)};
  CHECK_THROWS_WITH(grid_of(settings), test::contains("1000000"));
  auto one_at_a_time = settings;
  one_at_a_time.push_back(setting("grid", {"one_at_a_time"}));
  CHECK(grid_of(one_at_a_time).size() == 401);
}
