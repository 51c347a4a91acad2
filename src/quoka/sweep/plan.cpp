#include "quoka/sweep/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "quoka/capture/reader.hpp"
#include "quoka/capture/verified_state.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/sha256.hpp"
#include "quoka/metrics/columns.hpp"
#include "quoka/selection/parameters.hpp"
#include "quoka/sweep/grid.hpp"

namespace quoka {
namespace {

std::vector<PlanLayer> plan_layers(const CaptureReader& reader, const std::vector<Index>& wanted) {
  std::vector<PlanLayer> layers;
  std::vector<Index> present;
  for (const CaptureLayer& layer : reader.layers()) {
    present.push_back(layer.layer_idx);
    if (wanted.empty() || std::ranges::binary_search(wanted, layer.layer_idx)) {
      layers.push_back({layer.layer_idx, layer.shape, layer_kind(layer), layer.rules.scale});
    }
  }
  for (const Index layer_idx : wanted) {
    require<ConfigError>(std::ranges::find(present, layer_idx) != present.end(),
                         "layer {} is not in capture {}; it has layers {}", layer_idx,
                         reader.path().string(), fmt::join(present, ", "));
  }
  std::ranges::sort(layers, {}, &PlanLayer::layer_idx);
  return layers;
}

/// Every layer that less_is_more selects with must be in the capture. Throws: ConfigError.
void check_source_layers(const CaptureReader& reader, const std::vector<SelectorConfig>& configs) {
  for (const SelectorConfig& config : configs) {
    if (config.selector == SelectorKind::less_is_more) {
      (void)reader.layer(config.source_layer);
    }
  }
}

PlanCapture plan_capture(const std::string& path, const std::vector<Index>& wanted,
                         const std::vector<SelectorConfig>& configs) {
  const CaptureReader reader(path);
  check_source_layers(reader, configs);
  PlanCapture capture;
  capture.path = path;
  capture.stem = std::filesystem::path(path).stem().string();
  capture.model_id = reader.info().model_id;
  capture.layers = plan_layers(reader, wanted);
  capture.sha256 = sha256_of_file(path);
  capture.verdict = verified_state(path, capture.sha256);
  return capture;
}

void check_stems(const std::vector<std::string>& paths) {
  std::set<std::string> stems;
  for (const std::string& path : paths) {
    const std::string stem = std::filesystem::path(path).stem().string();
    require<ConfigError>(stems.insert(stem).second,
                         "two captures are named \"{}\" (the name is their label in the results); "
                         "rename {} or leave it out",
                         stem, path);
  }
}

/// The content is what names a cell, so it must be in the sweep once.
void check_contents(const std::vector<PlanCapture>& captures) {
  for (std::size_t i = 0; i < captures.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      require<ConfigError>(captures[i].sha256 != captures[j].sha256,
                           "captures {} and {} have the same content (their results would be the "
                           "same); leave one out",
                           captures[j].path, captures[i].path);
    }
  }
}

/// Everything a cell's value depends on besides capture, layer and configuration.
std::string constants_text(const SweepConstants& constants) {
  return fmt::format("metric_version={} sink_size={} min_history={} by_chunk={} selections={}",
                     metric_version, constants.sink_size, constants.min_history, constants.by_chunk,
                     constants.selections);
}

std::string plan_hash(const SweepPlan& plan) {
  std::string text = constants_text(plan.constants) + "\n";
  for (const PlanCapture& capture : plan.captures) {
    text += fmt::format("capture {} {}", capture.stem, capture.sha256);
    for (const PlanLayer& layer : capture.layers) {
      text += fmt::format(" {}", layer.layer_idx);
    }
    text += "\n";
  }
  text += fmt::format("{}\n", fmt::join(plan.config_texts, "\n"));
  return sha256_hex(text);
}

/// One parameter along all configurations.
ConfigParameter parameter_axis(const SweepPlan& plan, const Parameter& parameter) {
  ConfigParameter axis{
      std::string(parameter.name), std::string(parameter.help), parameter.is_number, {}};
  for (const SelectorConfig& config : plan.configs) {
    axis.values.push_back(effective_value(config, parameter));
  }
  return axis;
}

/// The budget as a number, in keys or in percent.
std::vector<ConfigParameter> budget_axes(const SweepPlan& plan) {
  ConfigParameter keys{"budget_keys", "budget as a number of keys", true, {}};
  ConfigParameter percent{"budget_percent", "budget as a percentage of the candidates", true, {}};
  for (const SelectorConfig& config : plan.configs) {
    const std::string text = config.budget.text();
    const bool is_percentage = config.budget.is_percentage();
    keys.values.push_back(is_percentage ? "" : text);
    percent.values.push_back(is_percentage ? text.substr(0, text.size() - 1) : "");
  }
  return {keys, percent};
}

}  // namespace

ReplaySettings SweepPlan::replay_settings(int n_threads) const {
  return {constants.sink_size, constants.min_history, constants.by_chunk, constants.selections,
          n_threads};
}

SweepPlan make_plan(const SweepConfig& config) {
  SweepPlan plan;
  plan.configs = make_grid(config);
  plan.constants = config.constants;
  for (const SelectorConfig& selector : plan.configs) {
    plan.config_ids.push_back(config_id(selector));
    plan.config_texts.push_back(canonical_text(selector));
  }
  check_stems(config.captures);
  for (const std::string& path : config.captures) {
    plan.captures.push_back(plan_capture(path, config.layers, plan.configs));
  }
  check_contents(plan.captures);
  plan.hash = plan_hash(plan);
  return plan;
}

std::string cell_id(const SweepPlan& plan, PlanPlace place, std::size_t config) {
  const PlanCapture& capture = plan.captures[place.capture];
  return sha256_hex(fmt::format("capture={} layer={} {} {}", capture.sha256,
                                capture.layers[place.layer].layer_idx,
                                constants_text(plan.constants), plan.config_texts[config]));
}

std::vector<Unit> missing_units(const SweepPlan& plan,
                                const std::unordered_set<std::string>& done) {
  std::vector<Unit> units;
  for (std::size_t capture = 0; capture < plan.captures.size(); ++capture) {
    for (std::size_t layer = 0; layer < plan.captures[capture].layers.size(); ++layer) {
      Unit unit{{capture, layer}, {}, {}, {}};
      for (std::size_t config = 0; config < plan.configs.size(); ++config) {
        std::string id = cell_id(plan, unit.place, config);
        if (!done.contains(id)) {
          unit.configs.push_back(config);
          unit.cell_ids.push_back(std::move(id));
        }
      }
      if (!unit.configs.empty()) {
        unit.id = sha256_hex(fmt::format("{}", fmt::join(unit.cell_ids, "\n")));
        units.push_back(std::move(unit));
      }
    }
  }
  return units;
}

std::vector<SelectorConfig> unit_configs(const SweepPlan& plan, const Unit& unit) {
  std::vector<SelectorConfig> configs;
  for (const std::size_t config : unit.configs) {
    configs.push_back(plan.configs[config]);
  }
  return configs;
}

std::string unit_name(const SweepPlan& plan, const Unit& unit) {
  const PlanCapture& capture = plan.captures[unit.place.capture];
  return fmt::format("{} layer {}", capture.stem, capture.layers[unit.place.layer].layer_idx);
}

ResultsAxes results_axes(const SweepPlan& plan) {
  ResultsAxes axes;
  axes.config_ids = plan.config_ids;
  for (const Parameter& parameter : parameters()) {
    axes.parameters.push_back(parameter_axis(plan, parameter));
  }
  for (ConfigParameter& budget : budget_axes(plan)) {
    axes.parameters.push_back(std::move(budget));
  }
  std::set<Index> layers;
  for (const PlanCapture& capture : plan.captures) {
    axes.captures.push_back(
        {capture.stem, capture.path, capture.sha256, capture.model_id, capture.verdict});
    for (const PlanLayer& layer : capture.layers) {
      layers.insert(layer.layer_idx);
      axes.n_q_heads = std::max(axes.n_q_heads, layer.shape.n_q_heads);
    }
  }
  axes.layers.assign(layers.begin(), layers.end());
  for (const PlanCapture& capture : plan.captures) {
    for (const Index layer_idx : axes.layers) {
      const auto found = std::ranges::find(capture.layers, layer_idx, &PlanLayer::layer_idx);
      axes.layer_facts.push_back(
          found == capture.layers.end()
              ? ResultsLayer{}
              : ResultsLayer{true, found->kind, found->softmax_scale, found->shape});
    }
  }
  return axes;
}

}  // namespace quoka
