#pragma once

#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "quoka/core/attention_shape.hpp"
#include "quoka/replay/replay.hpp"
#include "quoka/results/results.hpp"
#include "quoka/selection/config.hpp"
#include "quoka/sweep/config.hpp"

namespace quoka {

struct PlanLayer {
  Index layer_idx = 0;
  AttentionShape shape;
  std::string kind;  ///< "full", "window", ...
  double softmax_scale = 0;
};

struct PlanCapture {
  std::string path;  ///< as given
  std::string stem;  ///< the label
  std::string sha256;
  std::string model_id;
  std::string verdict;            ///< of quoka-capture verify: see capture/verified_state.hpp
  std::vector<PlanLayer> layers;  ///< those to replay, ascending
};

/// Everything a sweep computes. A cell is one configuration on one layer of one capture.
struct SweepPlan {
  std::vector<SelectorConfig> configs;    ///< canonical, no duplicates
  std::vector<std::string> config_ids;    ///< config_id of each
  std::vector<std::string> config_texts;  ///< canonical_text of each
  std::vector<PlanCapture> captures;
  SweepConstants constants;
  std::string hash;  ///< over all of the above but paths; the same for equal plans

  [[nodiscard]] ReplaySettings replay_settings(int n_threads) const;
};

/// Place in a plan (positions, not labels).
struct PlanPlace {
  std::size_t capture = 0;
  std::size_t layer = 0;
};

/// One piece of work: the missing cells of one layer of one capture.
struct Unit {
  PlanPlace place;
  std::vector<std::size_t> configs;   ///< positions in the plan, ascending
  std::vector<std::string> cell_ids;  ///< of those configurations
  std::string id;                     ///< hash of the cell ids
};

/// Opens and checks every capture, and makes the grid. Reads each capture once for its hash.
///
/// Throws: FormatError for a bad capture; ConfigError for a bad grid, a layer that a capture lacks
///         (naming those it has), or two captures with the same stem or the same content.
SweepPlan make_plan(const SweepConfig& config);

/// Identity of a cell: hash of capture content, layer, configuration, metric version and constants.
/// Equal ids have equal values, whatever grid asked for them.
std::string cell_id(const SweepPlan& plan, PlanPlace place, std::size_t config);

/// The work that is left when the cells in done need not be computed.
std::vector<Unit> missing_units(const SweepPlan& plan, const std::unordered_set<std::string>& done);

/// The configurations of a unit, in its order.
std::vector<SelectorConfig> unit_configs(const SweepPlan& plan, const Unit& unit);

/// Name of a unit in messages: "smollm2 layer 18".
std::string unit_name(const SweepPlan& plan, const Unit& unit);

/// The axes of the results file of this plan.
ResultsAxes results_axes(const SweepPlan& plan);

}  // namespace quoka
