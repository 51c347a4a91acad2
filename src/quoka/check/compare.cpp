#include "quoka/check/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

void check_constant(std::string_view name, Index in_results, Index in_profile) {
  require<ConfigError>(in_results == in_profile,
                       "{} is {} in the results and {} in the profile (other rows or positions are "
                       "measured); sweep again with --{} {}",
                       name, in_results, in_profile, name, in_profile);
}

std::set<std::string> word_set(const std::string& text) {
  const std::vector<std::string> words = words_of(text);
  return {words.begin(), words.end()};
}

std::vector<std::string> words_only_in(const std::string& text, const std::string& other) {
  const std::set<std::string> first = word_set(text);
  const std::set<std::string> second = word_set(other);
  std::vector<std::string> only;
  std::ranges::set_difference(first, second, std::back_inserter(only));
  return only;
}

/// Names the configuration of the results that shares most words with the one that is not there.
[[noreturn]] void refuse_configs(const ProfileConfig& wanted,
                                 const std::vector<ProfileConfig>& present) {
  const auto distance = [&](const ProfileConfig& config) {
    return words_only_in(wanted.text, config.text).size();
  };
  const auto nearest = std::ranges::min_element(present, {}, distance);
  throw ConfigError(fmt::format(
      "configuration {} ({}) of the profile is not in the results; the nearest there is {} with {} "
      "instead of {}. Sweep the configurations of the profile, or make a new profile",
      wanted.id, wanted.text, nearest->id,
      fmt::join(words_only_in(nearest->text, wanted.text), " "),
      fmt::join(words_only_in(wanted.text, nearest->text), " ")));
}

void check_configs(const Profile& profile, const std::vector<ProfileConfig>& present) {
  for (const ProfileConfig& wanted : profile.configs) {
    if (std::ranges::find(present, wanted.id, &ProfileConfig::id) == present.end()) {
      refuse_configs(wanted, present);
    }
  }
}

/// Groups by depth, kind or all would put other layers together than the profile did.
void check_layers(const Profile& profile, const std::vector<ProfileCapture>& captures) {
  if (profile.grouping == LayerGrouping::layer) {
    return;  // the layers are named there: missing ones are seen
  }
  for (const ProfileCapture& capture : captures) {
    const auto known = std::ranges::find(profile.captures, capture.sha256, &ProfileCapture::sha256);
    if (known == profile.captures.end()) {
      continue;
    }
    require<ConfigError>(
        known->layers == capture.layers,
        "the results hold layers {} of {}, the profile layers {} (groups by {} would hold other "
        "layers); sweep the layers of the profile, or make it with --group layer",
        fmt::join(capture.layers, " "), capture.model_id, fmt::join(known->layers, " "),
        name_of(profile.grouping));
  }
}

std::string describe(const ProfileCapture& capture) {
  return fmt::format("model {}, capture sha256 {}, layers {}", capture.model_id, capture.sha256,
                     fmt::join(capture.layers, " "));
}

std::vector<std::string> capture_notes(const Profile& profile,
                                       const std::vector<ProfileCapture>& captures) {
  const auto hashes = [](const std::vector<ProfileCapture>& from) {
    std::set<std::string> all;
    for (const ProfileCapture& capture : from) {
      all.insert(capture.sha256);
    }
    return all;
  };
  const bool same = hashes(profile.captures) == hashes(captures);
  std::vector<std::string> notes;
  notes.emplace_back(same ? "captures: those of the profile"
                          : "captures: NOT those of the profile, so models or prompts differ too");
  for (const ProfileCapture& capture : captures) {
    notes.push_back(fmt::format("measured: {}", describe(capture)));
  }
  if (!same) {
    for (const ProfileCapture& capture : profile.captures) {
      notes.push_back(fmt::format("profile:  {}", describe(capture)));
    }
  }
  return notes;
}

/// A difference of exactly the tolerance is within it, also when decimals round in binary.
Outcome judge(const ProfileRow& row, double found) {
  const double change = found - row.expected;
  const double slack = 1e-12 * std::fmax(std::abs(found), std::abs(row.expected));
  if (std::abs(change) <= row.tolerance + slack) {
    return Outcome::equal;
  }
  if (row.better == Better::neither) {
    return Outcome::changed;
  }
  return (change > 0) == (row.better == Better::higher) ? Outcome::improved : Outcome::worse;
}

Outcome outcome_of(const ProfileRow& row, const Observation& found) {
  if (found.n_missing_cells > 0) {
    return Outcome::missing;
  }
  if (std::isnan(row.expected)) {
    return found.n_values == 0 ? Outcome::equal : Outcome::appeared;
  }
  const auto share = [](Index n_undefined, Index n_values) {
    return static_cast<double>(n_undefined) / static_cast<double>(n_undefined + n_values);
  };
  const bool fewer_values = found.n_values == 0 || share(found.n_undefined, found.n_values) >
                                                       share(row.n_undefined, row.n_values);
  return fewer_values ? Outcome::undefined : judge(row, found.value);
}

ComparedRow compare_row(const ProfileRow& row, const Results& results,
                        const std::vector<LayerGroup>& groups) {
  const auto group = std::ranges::find(groups, row.group, &LayerGroup::name);
  if (group == groups.end()) {
    return {row, {}, Outcome::missing};
  }
  CheckMetric metric = check_metric(row.metric);
  metric.statistic = row.statistic;
  metric.better = row.better;
  const auto& ids = results.axes.config_ids;
  const Index config = std::ranges::find(ids, row.config) - ids.begin();
  const Observation found = observe(results, config, *group, metric);
  return {row, found, outcome_of(row, found)};
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, 7> names{"equal",   "improved",  "appeared", "worse",
                                                  "changed", "undefined", "missing"};
  return names[static_cast<std::size_t>(outcome)];
}

bool is_failure(Outcome outcome) { return outcome >= Outcome::worse; }

Index Comparison::count(Outcome outcome) const {
  return std::ranges::count(rows, outcome, &ComparedRow::outcome);
}

Index Comparison::n_failures() const {
  return std::ranges::count_if(rows, is_failure, &ComparedRow::outcome);
}

Comparison compare(const Profile& profile, const Results& results) {
  check_constant("sink_size", results.constants.sink_size, profile.sink_size);
  check_constant("min_history", results.constants.min_history, profile.min_history);
  const std::vector<ProfileConfig> configs = profile_configs(results.axes);
  const std::vector<ProfileCapture> captures = profile_captures(results.axes);
  check_configs(profile, configs);
  check_layers(profile, captures);
  Comparison comparison;
  comparison.labels = config_labels(profile.configs);
  comparison.notes = capture_notes(profile, captures);
  const auto n_more = configs.size() - profile.configs.size();
  if (n_more > 0) {
    comparison.notes.push_back(fmt::format(
        "{} configurations of the results are not in the profile and not compared", n_more));
  }
  for (const FailedUnit& unit : results.provenance.failed) {
    comparison.notes.push_back(
        fmt::format("not computed: {} layer {}: {}", unit.capture, unit.layer_idx, unit.reason));
  }
  const std::vector<LayerGroup> groups = layer_groups(results.axes, profile.grouping);
  for (const LayerGroup& group : groups) {
    if (std::ranges::find(profile.rows, group.name, &ProfileRow::group) == profile.rows.end()) {
      comparison.notes.push_back(
          fmt::format("layer group \"{}\" is not in the profile and not compared", group.name));
    }
  }
  for (const ProfileRow& row : profile.rows) {
    comparison.rows.push_back(compare_row(row, results, groups));
  }
  return comparison;
}

}  // namespace quoka
