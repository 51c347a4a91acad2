#pragma once

#include <limits>

#include "quoka/metrics/columns.hpp"
#include "quoka/results/results.hpp"

namespace quoka::test {

/// Three configurations, two captures, layers 3 and 7, up to three heads; capture b lacks layer 7
/// and has two heads. No two axes have the same length but captures and layers.
inline ResultsAxes small_axes() {
  ResultsAxes axes;
  axes.config_ids = {"bb", "cc", "aa"};
  axes.parameters = {
      {"selector", "which selector", false, {"quoka", "quoka", "oracle"}},
      {"budget", "keys kept", false, {"64", "12.5%", "64"}},
      {"n_sel_queries", "rows kept", true, {"16", "16", ""}},
      {"budget_keys", "budget in keys", true, {"64", "", "64"}},
      {"budget_percent", "budget in percent", true, {"", "12.5", ""}},
  };
  axes.captures = {{"a", "data/a.h5", "11ff", "model-a"}, {"b", "b.h5", "22ee", "model-b"}};
  axes.layers = {3, 7};
  axes.n_q_heads = 3;
  const ResultsLayer three_heads{true, "full", 0.125, {3, 1, 40, 40, 8, 4}};
  const ResultsLayer two_heads{true, "window+unrotated", 0.5, {2, 2, 40, 50, 8, 8}};
  axes.layer_facts = {three_heads, three_heads, two_heads, ResultsLayer{}};
  return axes;
}

/// A value that says where it belongs; float32 holds it exactly.
inline float small_value(Index column, CellPlace place, Index head) {
  return static_cast<float>(1000 * column + 100 * place.config + 20 * place.capture +
                            10 * place.layer + head);
}

/// Every cell that exists is computed but (config 0, capture a, layer 7), which failed.
inline Results small_results() {
  Results results = empty_results({.sink_size = 4, .min_history = 9}, small_axes());
  for (Index config = 0; config < 3; ++config) {
    for (Index cell = 0; cell < 4; ++cell) {
      const CellPlace place{config, cell / 2, cell % 2};
      const bool failed = config == 0 && cell == 1;
      const Index n_heads = results.axes.facts(place.capture, place.layer).shape.n_q_heads;
      for (Index c = 0; c < std::ssize(cell_columns()) && !failed; ++c) {
        for (Index head = 0; head < n_heads; ++head) {
          results.heads(c, place)[static_cast<std::size_t>(head)] = small_value(c, place, head);
        }
      }
    }
  }
  results.provenance.config_text = "budget = 64\n";
  results.provenance.command_line = "quoka-sweep run x.toml";
  results.provenance.units_total = 3;
  results.provenance.units_done = 2;
  results.provenance.failed = {{"a", 7, "a reason"}};
  return results;
}

}  // namespace quoka::test
