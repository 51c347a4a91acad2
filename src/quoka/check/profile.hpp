#pragma once

/// What a sweep's results are expected to look like. Comes in: results. Goes out: one number with a
/// tolerance per (layer group, configuration, metric). Knows nothing of files.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "quoka/check/layer_groups.hpp"
#include "quoka/check/metric.hpp"
#include "quoka/results/results.hpp"

namespace quoka {

/// Changes when the description of the file in docs/new-model.md changes in a way that a reader
/// must know.
constexpr Index profile_format_version = 1;

/// A capture that the profile was made from.
struct ProfileCapture {
  std::string model_id;
  std::string sha256;
  std::vector<Index> layers;  ///< layer indices that were replayed, ascending

  bool operator==(const ProfileCapture&) const = default;
};

struct ProfileConfig {
  std::string id;
  std::string text;  ///< "selector=quoka chunk_size=128 ...": the parameters that matter

  bool operator==(const ProfileConfig&) const = default;
};

struct ProfileRow {
  std::string group;   ///< name of the layer group
  std::string config;  ///< id of the configuration
  std::string metric;
  HeadStatistic statistic = HeadStatistic::mean;
  Better better = Better::neither;
  double expected = 0;    ///< NaN: undefined there
  double tolerance = 0;   ///< allowed absolute difference, >= 0
  Index n_values = 0;     ///< heads with a number
  Index n_undefined = 0;  ///< heads without
};

struct Profile {
  std::string program_version;  ///< of the program that measured
  Index sink_size = 0;
  Index min_history = 0;
  LayerGrouping grouping = LayerGrouping::depth;
  std::vector<ProfileCapture> captures;
  std::vector<ProfileConfig> configs;
  std::vector<ProfileRow> rows;
};

struct ProfileOptions {
  LayerGrouping grouping = LayerGrouping::depth;
  std::vector<std::string> metrics;     ///< names; empty: default_check_metrics()
  std::vector<std::string> tolerances;  ///< "METRIC=0.02" (absolute) or "METRIC=5%" (of expected)
};

/// The profile of complete results. Equal results give equal profiles.
///
/// Throws: ConfigError for an unknown or repeated metric, a tolerance that is no number or whose
/// metric the profile does not hold; FormatError if results lack cells.
Profile make_profile(const Results& results, const ProfileOptions& options);

/// The captures of results as a profile names them.
std::vector<ProfileCapture> profile_captures(const ResultsAxes& axes);

/// The configurations of results as a profile names them.
std::vector<ProfileConfig> profile_configs(const ResultsAxes& axes);

/// How reports name each configuration (by id): the id and its parameters that have several values
/// among the configurations.
std::map<std::string, std::string> config_labels(std::span<const ProfileConfig> configs);

/// Words between spaces.
std::vector<std::string> words_of(const std::string& text);

}  // namespace quoka
