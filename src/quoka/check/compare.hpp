#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "quoka/check/profile.hpp"
#include "quoka/results/results.hpp"

namespace quoka {

/// What became of one row of a profile. The last four are failures.
enum class Outcome {
  equal,      ///< within the tolerance, or undefined in both
  improved,   ///< better by more than the tolerance
  appeared,   ///< a number where the profile has none
  worse,      ///< worse by more than the tolerance
  changed,    ///< off by more than the tolerance, for a metric without direction
  undefined,  ///< no number where one is expected, or for a larger share of the heads
  missing,    ///< the layer group or some of its cells are not in the results
};

std::string_view name_of(Outcome outcome);
bool is_failure(Outcome outcome);

struct ComparedRow {
  ProfileRow row;
  Observation found;
  Outcome outcome = Outcome::equal;
};

/// New results beside a profile.
struct Comparison {
  std::vector<std::string> notes;  ///< what the two were measured on, and what differs there
  std::map<std::string, std::string> labels;  ///< of the profile's configurations, by id
  std::vector<ComparedRow> rows;              ///< one per row of the profile, in its order

  [[nodiscard]] Index count(Outcome outcome) const;
  [[nodiscard]] Index n_failures() const;
};

/// Compares every row of the profile with the results. Another capture or model is allowed and
/// noted; configurations that only the results have are noted.
///
/// Throws: ConfigError where numbers could not be compared: another sink_size or min_history, a
///         configuration that the results lack, or groups that hold other layers of the same
///         capture.
Comparison compare(const Profile& profile, const Results& results);

}  // namespace quoka
