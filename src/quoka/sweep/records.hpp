#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quoka/sweep/plan.hpp"

namespace quoka {

/// Why the cells of a unit could not be computed, as kept beside the parts.
struct FailureRecord {
  std::string unit_id;
  std::string capture;  ///< stem
  Index layer_idx = 0;
  std::string reason;
  std::vector<std::string> cell_ids;

  bool operator==(const FailureRecord&) const = default;
};

/// The plan as JSON: captures with hashes and layers, configurations, constants, program version.
std::string plan_json(const SweepPlan& plan);

std::string failure_json(const FailureRecord& failure);

/// Throws: FormatError if the text is not what failure_json writes.
FailureRecord parse_failure(std::string_view json);

}  // namespace quoka
