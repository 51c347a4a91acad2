#include "quoka/check/layer_groups.hpp"

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "unit/check/flat_results.hpp"
#include "unit/results/small_results.hpp"

using namespace quoka;

namespace {

/// "early early middle late": the group of each layer of the only capture.
std::string groups_by_layer(const ResultsAxes& axes, LayerGrouping grouping) {
  std::vector<std::string> names(static_cast<std::size_t>(axes.n_layers()), "none");
  for (const LayerGroup& group : layer_groups(axes, grouping)) {
    for (const LayerPlace& place : group.places) {
      names[static_cast<std::size_t>(place.layer)] = group.name;
    }
  }
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

}  // namespace

TEST_CASE("layers fall into thirds by their rank", "[check][groups]") {
  const auto [n_layers, expected] = GENERATE(table<Index, std::string>({
      {1, "middle"},
      {2, "early late"},
      {3, "early middle late"},
      {4, "early middle middle late"},
      {5, "early early middle late late"},
      {6, "early early middle middle late late"},
  }));
  CHECK(groups_by_layer(test::flat_results(n_layers).axes, LayerGrouping::depth) == expected);
}

TEST_CASE("thirds count the layers of each capture", "[check][groups]") {
  // Capture a has layers 3 and 7, capture b only layer 3.
  const auto groups = layer_groups(test::small_axes(), LayerGrouping::depth);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].name == "early");
  CHECK(groups[0].places == std::vector<LayerPlace>{{0, 0}});
  CHECK(groups[1].name == "middle");
  CHECK(groups[1].places == std::vector<LayerPlace>{{1, 0}});
  CHECK(groups[2].name == "late");
  CHECK(groups[2].places == std::vector<LayerPlace>{{0, 1}});
}

TEST_CASE("layers group by index and by kind over captures", "[check][groups]") {
  const ResultsAxes axes = test::small_axes();
  const auto by_layer = layer_groups(axes, LayerGrouping::layer);
  REQUIRE(by_layer.size() == 2);
  CHECK(by_layer[0].name == "layer 3");
  CHECK(by_layer[0].places == std::vector<LayerPlace>{{0, 0}, {1, 0}});
  CHECK(by_layer[1].name == "layer 7");
  CHECK(by_layer[1].places == std::vector<LayerPlace>{{0, 1}});
  const auto by_kind = layer_groups(axes, LayerGrouping::layer_kind);
  REQUIRE(by_kind.size() == 2);
  CHECK(by_kind[0].name == "full");
  CHECK(by_kind[0].places == std::vector<LayerPlace>{{0, 0}, {0, 1}});
  CHECK(by_kind[1].name == "window+unrotated");
  const auto all = layer_groups(axes, LayerGrouping::all);
  REQUIRE(all.size() == 1);
  CHECK(all[0].places.size() == 3);
}

TEST_CASE("groupings read back from their names", "[check][groups]") {
  for (const auto grouping : {LayerGrouping::depth, LayerGrouping::layer, LayerGrouping::layer_kind,
                              LayerGrouping::all}) {
    CHECK(parse_layer_grouping(name_of(grouping)) == grouping);
  }
  CHECK_THROWS_AS(parse_layer_grouping("layers"), ConfigError);
}
