#include "quoka/sweep/grid.hpp"

#include <unordered_set>

#include "quoka/core/error.hpp"
#include "quoka/selection/parameters.hpp"

namespace quoka {
namespace {

using Choice = std::vector<std::size_t>;  // for each axis, which of its values

void check_size(const SweepConfig& config) {
  Index points = 1;
  for (const Axis& axis : config.axes) {
    const Index n = std::ssize(axis.values);
    require<ConfigError>(n <= max_grid_points / points,
                         "the grid has more than {} points (the product of its axes); use fewer "
                         "values or grid = \"one_at_a_time\"",
                         max_grid_points);
    points *= n;
  }
}

/// Counts up like an odometer, the last axis fastest; false after the last choice.
bool next_choice(const std::vector<Axis>& axes, Choice& choice) {
  for (std::size_t a = axes.size(); a-- > 0;) {
    if (++choice[a] < axes[a].values.size()) {
      return true;
    }
    choice[a] = 0;
  }
  return false;
}

std::vector<Choice> all_choices(const SweepConfig& config) {
  Choice choice(config.axes.size(), 0);
  std::vector<Choice> choices{choice};
  if (config.grid == GridMode::product) {
    check_size(config);
    while (next_choice(config.axes, choice)) {
      choices.push_back(choice);
    }
    return choices;
  }
  for (std::size_t a = 0; a < config.axes.size(); ++a) {
    for (std::size_t value = 1; value < config.axes[a].values.size(); ++value) {
      choices.push_back(choice);
      choices.back()[a] = value;
    }
  }
  return choices;
}

SelectorConfig configuration(const std::vector<Axis>& axes, const Choice& choice) {
  SelectorConfig config;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    find_parameter(axes[a].name)->read(axes[a].values[choice[a]], config);
  }
  check_consistent(config);
  return canonical(config);
}

}  // namespace

std::vector<SelectorConfig> make_grid(const SweepConfig& config) {
  std::vector<SelectorConfig> configs;
  std::unordered_set<std::string> seen;
  for (const Choice& choice : all_choices(config)) {
    const SelectorConfig candidate = configuration(config.axes, choice);
    if (seen.insert(canonical_text(candidate)).second) {
      configs.push_back(candidate);
    }
  }
  return configs;
}

}  // namespace quoka
