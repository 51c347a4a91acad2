#include "quoka/check/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

/// "0.02" or "5%".
Tolerance parse_tolerance(const std::string& setting, std::string_view text) {
  const bool is_percent = text.ends_with('%');
  text.remove_suffix(is_percent ? 1 : 0);
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require<ConfigError>(error == std::errc{} && end == text.data() + text.size() &&
                           std::isfinite(value) && value >= 0,
                       "tolerance \"{}\" has no number of 0 or more; write METRIC=0.02 (absolute) "
                       "or METRIC=5% (of the expected value)",
                       setting);
  return is_percent ? Tolerance{.relative = value / 100} : Tolerance{.absolute = value};
}

void apply_tolerance(const std::string& setting, std::vector<CheckMetric>& metrics) {
  const std::size_t equals = setting.find('=');
  require<ConfigError>(equals != std::string::npos,
                       "tolerance \"{}\" has no \"=\"; write METRIC=0.02 or METRIC=5%", setting);
  const std::string name = setting.substr(0, equals);
  const auto found = std::ranges::find(metrics, name, &CheckMetric::name);
  require<ConfigError>(found != metrics.end(),
                       "tolerance \"{}\": the profile does not hold {}; add --metric {}", setting,
                       name, name);
  found->tolerance = parse_tolerance(setting, std::string_view(setting).substr(equals + 1));
}

std::vector<CheckMetric> chosen_metrics(const ProfileOptions& options) {
  std::vector<CheckMetric> metrics;
  std::set<std::string> seen;
  for (const std::string& name : options.metrics) {
    require<ConfigError>(seen.insert(name).second, "metric {} is given twice; give it once", name);
    metrics.push_back(check_metric(name));
  }
  if (metrics.empty()) {
    metrics = default_check_metrics();
  }
  for (const std::string& setting : options.tolerances) {
    apply_tolerance(setting, metrics);
  }
  return metrics;
}

void check_complete(const Results& results, std::span<const LayerGroup> groups) {
  Index n_cells = 0;
  Index n_missing = 0;
  for (Index config = 0; config < results.axes.n_configs(); ++config) {
    for (const LayerGroup& group : groups) {
      for (const LayerPlace& at : group.places) {
        n_missing += results.has_cell({config, at.capture, at.layer}) ? 0 : 1;
        ++n_cells;
      }
    }
  }
  require<FormatError>(n_cells > 0 && n_missing == 0,
                       "{} of {} cells of the results were not computed (a profile of a part would "
                       "expect too little); finish the sweep first",
                       n_missing, n_cells);
}

ProfileRow make_row(const Results& results, Index config, const LayerGroup& group,
                    const CheckMetric& metric) {
  const Observation found = observe(results, config, group, metric);
  ProfileRow row;
  row.group = group.name;
  row.config = results.axes.config_ids[static_cast<std::size_t>(config)];
  row.metric = metric.name;
  row.statistic = metric.statistic;
  row.better = metric.better;
  row.expected = found.value;
  if (!std::isnan(found.value)) {
    const double allowed =
        metric.tolerance.absolute + metric.tolerance.relative * std::abs(found.value);
    row.tolerance = std::stod(fmt::format("{:.3g}", allowed));
  }
  row.n_values = found.n_values;
  row.n_undefined = found.n_undefined;
  return row;
}

}  // namespace

std::vector<ProfileCapture> profile_captures(const ResultsAxes& axes) {
  std::vector<ProfileCapture> captures;
  for (Index c = 0; c < axes.n_captures(); ++c) {
    const ResultsCapture& from = axes.captures[static_cast<std::size_t>(c)];
    ProfileCapture capture{from.model_id, from.sha256, {}};
    for (Index layer = 0; layer < axes.n_layers(); ++layer) {
      if (axes.facts(c, layer).present) {
        capture.layers.push_back(axes.layers[static_cast<std::size_t>(layer)]);
      }
    }
    captures.push_back(std::move(capture));
  }
  return captures;
}

std::vector<ProfileConfig> profile_configs(const ResultsAxes& axes) {
  std::vector<ProfileConfig> configs;
  for (std::size_t i = 0; i < axes.config_ids.size(); ++i) {
    ProfileConfig config{axes.config_ids[i], ""};
    for (const ConfigParameter& parameter : axes.parameters) {
      const std::string& value = parameter.values[i];
      const bool is_derived = parameter.name.starts_with("budget_");  // budget says it already
      if (!value.empty() && !is_derived) {
        config.text += (config.text.empty() ? "" : " ") + parameter.name + "=" + value;
      }
    }
    configs.push_back(std::move(config));
  }
  return configs;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin) {
      words.push_back(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return words;
}

std::map<std::string, std::string> config_labels(std::span<const ProfileConfig> configs) {
  const auto name_of_word = [](const std::string& word) { return word.substr(0, word.find('=')); };
  std::map<std::string, std::set<std::string>> words_by_name;
  for (const ProfileConfig& config : configs) {
    for (const std::string& word : words_of(config.text)) {
      words_by_name[name_of_word(word)].insert(word);
    }
  }
  std::map<std::string, std::string> labels;
  for (const ProfileConfig& config : configs) {
    std::string label = config.id;
    for (const std::string& word : words_of(config.text)) {
      label += words_by_name[name_of_word(word)].size() > 1 ? " " + word : "";
    }
    labels[config.id] = label;
  }
  return labels;
}

Profile make_profile(const Results& results, const ProfileOptions& options) {
  const std::vector<CheckMetric> metrics = chosen_metrics(options);
  const std::vector<LayerGroup> groups = layer_groups(results.axes, options.grouping);
  check_complete(results, groups);
  Profile profile;
  profile.program_version = results.provenance.version;
  profile.sink_size = results.constants.sink_size;
  profile.min_history = results.constants.min_history;
  profile.grouping = options.grouping;
  profile.captures = profile_captures(results.axes);
  profile.configs = profile_configs(results.axes);
  for (Index config = 0; config < results.axes.n_configs(); ++config) {
    for (const LayerGroup& group : groups) {
      for (const CheckMetric& metric : metrics) {
        profile.rows.push_back(make_row(results, config, group, metric));
      }
    }
  }
  return profile;
}

}  // namespace quoka
