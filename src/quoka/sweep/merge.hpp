#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>

#include "quoka/results/results.hpp"
#include "quoka/sweep/existing_output.hpp"
#include "quoka/sweep/plan.hpp"

namespace quoka {

/// Puts every cell of the plan that a part or the existing output holds into its place; parts come
/// first. Everything else is NaN.
///
/// Throws: as read_part.
Results merge(const SweepPlan& plan,
              const std::unordered_map<std::string, std::filesystem::path>& parts,
              const ExistingOutput* existing);

}  // namespace quoka
