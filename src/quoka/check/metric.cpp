#include "quoka/check/metric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

constexpr std::array<std::string_view, 7> default_metrics{
    "mass_recall_no_sink_mean", "out_rel_l2_mean",    "out_rel_l2_p99",  "oracle_ratio",
    "needle_key_recall",        "needle_mass_recall", "floor_out_rel_l2"};

constexpr std::string_view floor_name = "floor_out_rel_l2";

bool is_tail(std::string_view name) {
  constexpr std::array<std::string_view, 5> tails{"_p01", "_p05", "_p95", "_p99", "_worst"};
  return std::ranges::any_of(tails, [name](auto tail) { return name.ends_with(tail); });
}

bool is_count(std::string_view name) {
  return name.starts_with("n_") || name.ends_with("_n_valid") || name == "keys_kept";
}

/// Means of one capture on another CPU move by less than 5e-4 where near-tied keys swap; the
/// tolerances below are about twenty times that, and small beside what separates selectors.
Tolerance default_tolerance(std::string_view name) {
  if (is_count(name)) {
    return {};  // nothing rounds here
  }
  if (name.starts_with("needle_")) {
    return {.absolute = 0.1};  // moves by whole keys: a needle has some twenty
  }
  if (name == floor_name) {
    return {.relative = 1};  // rounding noise: only its order of magnitude says something
  }
  const bool is_error = name.starts_with("out_rel_l2") || name.starts_with("out_max_abs") ||
                        name.starts_with("kl_") || name == "cut_margin";
  if (is_error) {  // errors span decades; below 1e-5 they approach the floor
    return {.absolute = 1e-5, .relative = is_tail(name) ? 0.15 : 0.05};
  }
  return {.absolute = is_tail(name) ? 0.05 : 0.01};  // shares: from 0 to 1
}

/// As many digits as a float32 holds, so that a profile is readable and reads back the same.
double rounded(double value) { return std::stod(fmt::format("{:.7g}", value)); }

double worse_of(double a, double b, Better better) {
  return better == Better::higher ? std::fmin(a, b) : std::fmax(a, b);
}

}  // namespace

CheckMetric check_metric(std::string_view name) {
  CheckMetric metric;
  metric.name = name;
  metric.column = find_cell_column(name);
  require<ConfigError>(metric.column >= 0,
                       "metric \"{}\" is not known; the names are the variables of the results "
                       "file, for example out_rel_l2_mean",
                       name);
  metric.better = cell_columns()[static_cast<std::size_t>(metric.column)].better;
  if (name == floor_name) {
    metric.better = Better::lower;  // more noise is a fault here, less is none
  }
  metric.statistic = is_tail(name) ? HeadStatistic::worst_head : HeadStatistic::mean;
  metric.tolerance = default_tolerance(name);
  return metric;
}

std::vector<CheckMetric> default_check_metrics() {
  std::vector<CheckMetric> metrics;
  std::ranges::transform(default_metrics, std::back_inserter(metrics), check_metric);
  return metrics;
}

Observation observe(const Results& results, Index config, const LayerGroup& group,
                    const CheckMetric& metric) {
  Observation found;
  double sum = 0;
  double worst = std::numeric_limits<double>::quiet_NaN();
  for (const LayerPlace& at : group.places) {
    const CellPlace place{config, at.capture, at.layer};
    found.n_missing_cells += results.has_cell(place) ? 0 : 1;
    const Index n_heads = results.axes.facts(at.capture, at.layer).shape.n_q_heads;
    for (Index head = 0; head < n_heads; ++head) {
      const double value = static_cast<double>(results.value(metric.column, place, head));
      if (std::isfinite(value)) {
        sum += value;
        worst = worse_of(worst, value, metric.better);
        ++found.n_values;
      } else {
        ++found.n_undefined;
      }
    }
  }
  if (found.n_values > 0) {
    const double mean = sum / static_cast<double>(found.n_values);
    found.value = rounded(metric.statistic == HeadStatistic::mean ? mean : worst);
  }
  return found;
}

}  // namespace quoka
