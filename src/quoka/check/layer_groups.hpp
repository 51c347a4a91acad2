#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quoka/results/results.hpp"

namespace quoka {

/// Which layers share one row of a profile.
enum class LayerGrouping {
  depth,       ///< early, middle and late third of the layers that the capture has results for
  layer,       ///< each layer index on its own
  layer_kind,  ///< "full", "window", ...
  all,         ///< one group
};

std::string_view name_of(LayerGrouping grouping);

/// Throws: ConfigError naming the known ones.
LayerGrouping parse_layer_grouping(std::string_view name);

/// One layer of one capture (positions on the axes, not labels).
struct LayerPlace {
  Index capture = 0;
  Index layer = 0;

  bool operator==(const LayerPlace&) const = default;
};

/// Layers that are judged together.
struct LayerGroup {
  std::string name;
  std::vector<LayerPlace> places;  ///< not empty
};

/// The groups of all layers that exist, over all captures.
///
/// With depth, layer i of n (in ascending order, those of the results only) is in third
/// floor((i + 1/2) * 3 / n): one layer alone is in the middle, and models with other numbers of
/// layers have the same groups.
std::vector<LayerGroup> layer_groups(const ResultsAxes& axes, LayerGrouping grouping);

}  // namespace quoka
