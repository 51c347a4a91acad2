#pragma once

#include <string>

#include "quoka/results/results.hpp"

namespace quoka {

/// What a line of the table stands for besides its configuration.
enum class TableRows { all, by_capture, by_layer };

/// The results as an aligned text table, one line per configuration in file order: the parameters
/// that vary, then means over captures, layers and heads (except for the tail, which is the worst
/// head's). Says so when configurations were measured on different rows. NaN is "-".
std::string results_table(const Results& results, TableRows rows);

}  // namespace quoka
