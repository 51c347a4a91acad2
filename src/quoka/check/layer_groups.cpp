#include "quoka/check/layer_groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

constexpr std::array<std::pair<LayerGrouping, std::string_view>, 4> grouping_names{{
    {LayerGrouping::depth, "depth"},
    {LayerGrouping::layer, "layer"},
    {LayerGrouping::layer_kind, "layer_kind"},
    {LayerGrouping::all, "all"},
}};

constexpr std::array<std::string_view, 3> thirds{"early", "middle", "late"};

std::string_view third(const ResultsAxes& axes, LayerPlace place) {
  Index n_present = 0;
  Index rank = 0;
  for (Index layer = 0; layer < axes.n_layers(); ++layer) {
    if (axes.facts(place.capture, layer).present) {
      rank += layer < place.layer ? 1 : 0;
      ++n_present;
    }
  }
  return thirds[static_cast<std::size_t>((2 * rank + 1) * 3 / (2 * n_present))];
}

std::string group_name(const ResultsAxes& axes, LayerGrouping grouping, LayerPlace place) {
  switch (grouping) {
    case LayerGrouping::depth:
      return std::string(third(axes, place));
    case LayerGrouping::layer:
      return fmt::format("layer {}", axes.layers[static_cast<std::size_t>(place.layer)]);
    case LayerGrouping::layer_kind:
      return axes.facts(place.capture, place.layer).kind;
    case LayerGrouping::all:
      break;
  }
  return "all";
}

}  // namespace

std::string_view name_of(LayerGrouping grouping) {
  return std::ranges::find(grouping_names, grouping, [](const auto& pair) { return pair.first; })
      ->second;
}

LayerGrouping parse_layer_grouping(std::string_view name) {
  const auto* const found =
      std::ranges::find(grouping_names, name, [](const auto& pair) { return pair.second; });
  require<ConfigError>(found != grouping_names.end(),
                       "layer group \"{}\" is not known; use depth, layer, layer_kind or all",
                       name);
  return found->first;
}

std::vector<LayerGroup> layer_groups(const ResultsAxes& axes, LayerGrouping grouping) {
  std::vector<LayerGroup> groups;
  if (grouping == LayerGrouping::depth) {  // in this order, whichever comes first
    for (const std::string_view name : thirds) {
      groups.push_back({std::string(name), {}});
    }
  }
  for (Index layer = 0; layer < axes.n_layers(); ++layer) {
    for (Index capture = 0; capture < axes.n_captures(); ++capture) {
      if (!axes.facts(capture, layer).present) {
        continue;
      }
      const LayerPlace place{capture, layer};
      const std::string name = group_name(axes, grouping, place);
      const auto found = std::ranges::find(groups, name, &LayerGroup::name);
      if (found == groups.end()) {
        groups.push_back({name, {place}});
      } else {
        found->places.push_back(place);
      }
    }
  }
  std::erase_if(groups, [](const LayerGroup& group) { return group.places.empty(); });
  return groups;
}

}  // namespace quoka
