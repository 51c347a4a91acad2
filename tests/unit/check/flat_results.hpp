#pragma once

#include <algorithm>
#include <string>

#include "quoka/metrics/columns.hpp"
#include "quoka/results/results.hpp"

namespace quoka::test {

/// One capture with layers 0, 1, ... of two heads under configurations aa (budget 64) and bb
/// (budget 128). Every value is 0.5, which float32 and decimals hold exactly.
inline Results flat_results(Index n_layers = 3) {
  ResultsAxes axes;
  axes.config_ids = {"aa", "bb"};
  axes.parameters = {
      {"selector", "which selector", false, {"quoka", "quoka"}},
      {"budget", "keys kept", false, {"64", "128"}},
      {"seed", "of random choices", true, {"", ""}},
      {"budget_keys", "budget in keys", true, {"64", "128"}},
  };
  axes.captures = {{"a", "a.h5", "11ff", "model-a"}};
  for (Index layer = 0; layer < n_layers; ++layer) {
    axes.layers.push_back(layer);
    axes.layer_facts.push_back({true, "full", 0.125, {2, 1, 40, 40, 8, 8}});
  }
  axes.n_q_heads = 2;
  Results results = empty_results({.sink_size = 4, .min_history = 9}, std::move(axes));
  std::ranges::fill(results.values, 0.5F);
  results.provenance.version = "0.1.0";
  return results;
}

/// Sets both heads of one variable of one configuration and layer.
inline void set_heads(Results& results, const std::string& variable, Index config, Index layer,
                      float first, float second) {
  const auto heads = results.heads(find_cell_column(variable), {config, 0, layer});
  heads[0] = first;
  heads[1] = second;
}

}  // namespace quoka::test
