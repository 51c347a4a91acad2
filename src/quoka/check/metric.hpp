#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "quoka/check/layer_groups.hpp"
#include "quoka/metrics/columns.hpp"
#include "quoka/results/results.hpp"

namespace quoka {

/// How the values of a layer group's heads become one number.
enum class HeadStatistic {
  mean,
  worst_head,  ///< the lowest where higher is better, else the largest
};

/// Allowed difference: absolute + relative * |expected value|.
struct Tolerance {
  double absolute = 0;
  double relative = 0;

  bool operator==(const Tolerance&) const = default;
};

/// One metric that a profile holds.
struct CheckMetric {
  std::string name;  ///< a variable of the results file
  Index column = 0;  ///< its cell column
  Better better = Better::neither;
  HeadStatistic statistic = HeadStatistic::mean;
  Tolerance tolerance;
};

/// The metric with its default direction, statistic and tolerance (docs/new-model.md gives the
/// reasons). Quantiles below and above the median, and worst rows, are those of the worst head;
/// everything else is the mean over heads.
///
/// Throws: ConfigError if no variable has the name.
CheckMetric check_metric(std::string_view name);

/// What a profile holds if nothing else is asked for: mass, error, tail, both needles, floor.
std::vector<CheckMetric> default_check_metrics();

/// What results say about one metric of one configuration in one layer group.
struct Observation {
  double value = std::numeric_limits<double>::quiet_NaN();  ///< rounded to 7 digits; NaN: undefined
  Index n_values = 0;                                       ///< heads with a number
  Index n_undefined = 0;                                    ///< heads without
  Index n_missing_cells = 0;                                ///< layers that were not computed
};

/// Mean or worst over the heads of all layers of the group. Heads without a number (NaN or
/// infinity) are left out and counted.
Observation observe(const Results& results, Index config, const LayerGroup& group,
                    const CheckMetric& metric);

}  // namespace quoka
