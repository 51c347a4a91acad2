#pragma once

/// Compares the engine with the reference, column by column and key by key.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "quoka/metrics/columns.hpp"
#include "quoka/selection/parameters.hpp"
#include "reference/naive_replay.hpp"
#include "support/catch.hpp"
#include "support/tiny_layer.hpp"

namespace quoka::test {

/// How far a float32 value may be from the reference.
///
/// A logit of size 16 is off by about 16 * Dk * 2^-24 < 2e-5 at the sizes of these tests, and a
/// probability, a recall or an output by the same fraction.
constexpr double relative_tolerance = 3e-5;
constexpr double absolute_tolerance = 3e-5;

/// A decision is clear if its relative gap is far above the rounding of a float32 score (about
/// Dk * 2^-24 = 5e-7 for Dk = 8).
constexpr double clear_gap = 3e-6;

/// Outcome over several configurations. message lists the first differences; empty = equal.
struct Comparison {
  std::string message;
  int n_differences = 0;
  int n_compared = 0;  ///< configurations whose decisions were clear in the reference
  int n_unclear = 0;   ///< the others: float32 may decide differently there

  void add(const std::string& text) {
    constexpr int n_shown = 12;
    if (++n_differences <= n_shown) {
      message += "\n  " + text;
    }
  }
};

inline bool close(double actual, double expected) {
  if (std::isnan(actual) || std::isnan(expected)) {
    return std::isnan(actual) && std::isnan(expected);
  }
  return std::abs(actual - expected) <=
         absolute_tolerance + relative_tolerance * std::abs(expected);
}

inline void compare_cell_values(const std::string& config, const CellResult& actual,
                                const naive::Cell& expected, Comparison& comparison) {
  const auto columns = cell_columns();
  for (Index head = 0; head < actual.values.rows(); ++head) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double value = static_cast<double>(actual.values(head, static_cast<Index>(c)));
      const auto& by_name = naive::at(expected.values, head);
      const auto found = by_name.find(columns[c].name);
      if (columns[c].name == "floor_out_rel_l2") {
        continue;  // float32 against float64: no counterpart here
      }
      if (found == by_name.end()) {
        comparison.add(fmt::format("the reference has no column {}", columns[c].name));
      } else if (!close(value, found->second)) {
        comparison.add(fmt::format("{} | head {} {}: engine {}, reference {}", config, head,
                                   columns[c].name, value, found->second));
      }
    }
  }
}

inline void compare_chunk_values(const std::string& config, const CellResult& actual,
                                 const naive::Cell& expected, Comparison& comparison) {
  if (actual.chunks != expected.chunks ||
      actual.chunk_values.size() != expected.chunk_values.size()) {
    comparison.add(fmt::format("{} | {} chunks, reference {}, or other bounds", config,
                               actual.chunks.size(), expected.chunks.size()));
    return;
  }
  for (std::size_t chunk = 0; chunk < actual.chunk_values.size(); ++chunk) {
    const Matrix& values = actual.chunk_values[chunk];
    for (Index head = 0; head < values.rows(); ++head) {
      for (Index c = 0; c < values.cols(); ++c) {
        const double reference = naive::at(naive::at(expected.chunk_values[chunk], head), c);
        const double value = static_cast<double>(values(head, c));
        if (!close(value, reference)) {
          comparison.add(fmt::format("{} | chunk {} head {} {}: engine {}, reference {}", config,
                                     chunk, head, chunk_columns()[static_cast<std::size_t>(c)].name,
                                     value, reference));
        }
      }
    }
  }
}

inline void compare_kept_keys(const std::string& config, const CellResult& actual,
                              const naive::Cell& expected, const naive::Layer& layer,
                              Comparison& comparison) {
  if (actual.kept.size() != expected.kept.size()) {
    comparison.add(fmt::format("{} | {} kept sets, reference {}", config, actual.kept.size(),
                               expected.kept.size()));
    return;
  }
  for (const KeptKeys& engine : actual.kept) {
    const auto same_place = [&](const naive::Kept& kept) {
      return engine.kv_head == kept.kv_head &&
             engine.chunk_begin == layer.position(kept.rows.begin);
    };
    const auto found = std::find_if(expected.kept.begin(), expected.kept.end(), same_place);
    if (found == expected.kept.end()) {
      comparison.add(fmt::format("{} | chunk at {} KV head {} is not active in the reference",
                                 config, engine.chunk_begin, engine.kv_head));
      continue;
    }
    const naive::Kept& reference = *found;
    const naive::Positions keys(engine.key_indices.begin(), engine.key_indices.end());
    if (keys != reference.keys) {
      comparison.add(fmt::format("{} | chunk at {} KV head {}: kept [{}], reference [{}]", config,
                                 engine.chunk_begin, engine.kv_head, fmt::join(keys, " "),
                                 fmt::join(reference.keys, " ")));
    }
    if (!close(static_cast<double>(engine.cut_score), reference.cut_score) ||
        !close(static_cast<double>(engine.cut_margin), reference.cut_margin)) {
      comparison.add(fmt::format("{} | chunk at {} KV head {}: cut {} margin {}, reference {} {}",
                                 config, engine.chunk_begin, engine.kv_head, engine.cut_score,
                                 engine.cut_margin, reference.cut_score, reference.cut_margin));
    }
  }
}

/// Replays the layer with the engine and with the reference and compares everything: cell columns,
/// chunk columns, kept keys, cut scores.
inline Comparison compare_with_reference(const TinyLayer& tiny,
                                         const std::vector<SelectorConfig>& configs,
                                         ReplaySettings settings = {}) {
  settings.by_chunk = true;
  settings.selections = true;
  const std::vector<CellResult> results = replay_layer(tiny.input(), configs, settings);
  const naive::Layer layer = naive::to_layer(tiny.input());
  const naive::Dense dense = naive::dense_attention(layer);
  Comparison comparison;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    const naive::Cell expected = naive::replay(layer, dense, tiny.needles, configs[i], settings);
    if (expected.gap.smallest < clear_gap) {
      ++comparison.n_unclear;
      continue;
    }
    ++comparison.n_compared;
    const std::string config = canonical_text(configs[i]);
    compare_cell_values(config, results.at(i), expected, comparison);
    compare_chunk_values(config, results.at(i), expected, comparison);
    compare_kept_keys(config, results.at(i), expected, layer, comparison);
  }
  return comparison;
}

/// Checks that the engine equals the reference and that few configurations were too close to call.
inline void check_equal(const TinyLayer& layer, const std::vector<SelectorConfig>& configs,
                        const ReplaySettings& settings = {}) {
  const Comparison comparison = compare_with_reference(layer, configs, settings);
  INFO(comparison.n_differences << " differences, " << comparison.n_unclear << " unclear of "
                                << configs.size() << comparison.message);
  CHECK(comparison.n_differences == 0);
  CHECK(comparison.n_compared > 5 * comparison.n_unclear);
}

/// Reads "selector=quoka budget=12" on top of the defaults, with small numbers as base: chunk 16,
/// 5 queries, budget 9.
inline SelectorConfig config_from(const std::string& text) {
  SelectorConfig config;
  config.chunk_size = 16;
  config.n_sel_queries = 5;
  config.budget = Budget::from_keys(9);
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const std::size_t equals = word.find('=');
    find_parameter(word.substr(0, equals))->read(word.substr(equals + 1), config);
    begin = end + 1;
  }
  return config;
}

/// One configuration of every selector and of every mechanism, with the text added to each.
inline std::vector<SelectorConfig> mixed_configs(const std::string& added = "") {
  std::vector<SelectorConfig> configs;
  for (const std::string base : {"budget=9",
                                 "budget=1",
                                 "budget=3",
                                 "budget=30",
                                 "budget=25%",
                                 "budget=33.333%",
                                 "n_sel_queries=1",
                                 "query_rule=all",
                                 "query_rule=random",
                                 "query_rule=farthest_point",
                                 "query_rule=stride query_aggregation=mean",
                                 "score=dot",
                                 "score=softmax",
                                 "score=softmax query_rule=last",
                                 "head_aggregation=max_after",
                                 "head_aggregation=mean_after query_scope=per_group",
                                 "keep_first=2 keep_recent=3",
                                 "candidates=cache",
                                 "candidates=cache score=dot budget=20",
                                 "candidates=cache selector=oracle",
                                 "candidates=cache selector=sink_recent keep_first=9",
                                 "candidates=cache selector=random",
                                 "selector=oracle",
                                 "selector=oracle budget=1",
                                 "selector=random keep_recent=2",
                                 "selector=random budget=25%",
                                 "selector=sink_recent keep_first=4",
                                 "selector=keydiff",
                                 "selector=keydiff keep_first=1",
                                 "selector=keydiff candidates=cache",
                                 "chunk_offset=5",
                                 "chunk_size=7 n_sel_queries=3"}) {
    configs.push_back(config_from(added.empty() ? base : base + " " + added));
  }
  return configs;
}

}  // namespace quoka::test
