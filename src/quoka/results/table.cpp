#include "quoka/results/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "quoka/metrics/columns.hpp"

namespace quoka {
namespace {

constexpr std::size_t usual_width = 120;  // of a terminal
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

enum class Reduction { mean, largest };

/// One metric of the table.
struct TableMetric {
  std::string_view title;
  Index column;
  Reduction reduction;
};

const std::array<TableMetric, 7>& table_metrics() {
  static const std::array<TableMetric, 7> metrics{{
      {"recall +", cell_column(RowMetric::mass_recall_no_sink, RowStatistic::mean),
       Reduction::mean},
      {"error -", cell_column(RowMetric::out_rel_l2, RowStatistic::mean), Reduction::mean},
      {"tail -", cell_column(RowMetric::out_rel_l2, RowStatistic::p99), Reduction::largest},
      {"oracle +", cell_column(ChunkMetric::oracle_ratio), Reduction::mean},
      {"n.keys +", cell_column(ChunkMetric::needle_key_recall), Reduction::mean},
      {"n.mass +", cell_column(ChunkMetric::needle_mass_recall), Reduction::mean},
      {"floor", cell_column(CellCount::floor_out_rel_l2), Reduction::mean},
  }};
  return metrics;
}

constexpr std::string_view legend =
    "all values are ratios (unit 1); + higher is better, - lower is better; means over captures, "
    "layers and heads\n"
    "recall = mass_recall_no_sink_mean, error = out_rel_l2_mean, tail = out_rel_l2_p99 of the "
    "worst "
    "head,\n"
    "oracle = oracle_ratio, n.keys = needle_key_recall, n.mass = needle_mass_recall,\n"
    "floor = floor_out_rel_l2, the numeric noise in error\n";

/// Shorter titles for tables that would not fit.
std::string_view short_name(std::string_view parameter) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> names{{
      {"chunk_size", "chunk"},
      {"chunk_offset", "offset"},
      {"n_sel_queries", "n_q"},
      {"query_rule", "rule"},
      {"query_scope", "scope"},
      {"query_mean", "mean"},
      {"head_aggregation", "heads"},
      {"query_aggregation", "queries"},
      {"keep_first", "first"},
      {"keep_recent", "recent"},
  }};
  const auto* const found =
      std::ranges::find(names, parameter, &std::pair<std::string_view, std::string_view>::first);
  return found == names.end() ? parameter : found->second;
}

std::string number(double value) {
  constexpr double smallest_fixed = 1e-3;
  constexpr double largest_fixed = 1e4;
  if (std::isnan(value)) {
    return "-";
  }
  const bool fixed = std::abs(value) >= smallest_fixed && std::abs(value) < largest_fixed;
  return fixed || value == 0 ? fmt::format("{:.4f}", value) : fmt::format("{:.1e}", value);
}

/// Captures and layers that one line covers.
struct Group {
  std::string name;
  IndexRange captures;
  IndexRange layers;
};

std::vector<Group> groups(const ResultsAxes& axes, TableRows rows) {
  const IndexRange captures{0, axes.n_captures()};
  const IndexRange layers{0, axes.n_layers()};
  std::vector<Group> list;
  if (rows == TableRows::by_capture) {
    for (Index i = 0; i < captures.end; ++i) {
      list.push_back({axes.captures[static_cast<std::size_t>(i)].stem, {i, i + 1}, layers});
    }
  } else if (rows == TableRows::by_layer) {
    for (Index i = 0; i < layers.end; ++i) {
      const Index layer_idx = axes.layers[static_cast<std::size_t>(i)];
      list.push_back({fmt::format("{}", layer_idx), captures, {i, i + 1}});
    }
  } else {
    list.push_back({"", captures, layers});
  }
  return list;
}

double reduce(const Results& results, const TableMetric& metric, Index config, const Group& group) {
  double sum = 0;
  double largest = -std::numeric_limits<double>::infinity();
  Index count = 0;
  for (Index capture = group.captures.begin; capture < group.captures.end; ++capture) {
    for (Index layer = group.layers.begin; layer < group.layers.end; ++layer) {
      for (Index head = 0; head < results.axes.n_q_heads; ++head) {
        const auto value =
            static_cast<double>(results.value(metric.column, {config, capture, layer}, head));
        if (!std::isnan(value)) {
          sum += value;
          largest = std::max(largest, value);
          ++count;
        }
      }
    }
  }
  if (count == 0) {
    return nan_value;
  }
  return metric.reduction == Reduction::mean ? sum / static_cast<double>(count) : largest;
}

/// True if two configurations to which the parameter matters differ in it.
bool varies(const ConfigParameter& parameter) {
  std::string_view first;
  return std::ranges::any_of(parameter.values, [&first](const std::string& value) {
    first = first.empty() ? value : first;
    return !value.empty() && value != first;
  });
}

/// budget says the same in one column.
bool is_budget_number(const ConfigParameter& parameter) {
  return parameter.name == "budget_keys" || parameter.name == "budget_percent";
}

/// Lines of fields; the first line is the header. n_left fields are left-aligned, the others right.
struct TextTable {
  std::vector<std::vector<std::string>> lines;
  std::size_t n_left = 0;

  [[nodiscard]] std::vector<std::size_t> column_widths() const {
    std::vector<std::size_t> widths(lines.front().size(), 0);
    for (const auto& line : lines) {
      for (std::size_t column = 0; column < line.size(); ++column) {
        widths[column] = std::max(widths[column], line[column].size());
      }
    }
    return widths;
  }

  [[nodiscard]] std::size_t width() const {
    const auto widths = column_widths();
    return std::accumulate(widths.begin(), widths.end(), 2 * (widths.size() - 1));
  }

  [[nodiscard]] std::string text() const {
    const auto widths = column_widths();
    std::string result;
    for (const auto& line : lines) {
      for (std::size_t column = 0; column < line.size(); ++column) {
        result += column == 0 ? "" : "  ";
        result += column < n_left ? fmt::format("{:<{}}", line[column], widths[column])
                                  : fmt::format("{:>{}}", line[column], widths[column]);
      }
      result += '\n';
    }
    return result;
  }
};

std::vector<const ConfigParameter*> shown_parameters(const ResultsAxes& axes) {
  std::vector<const ConfigParameter*> shown;
  for (const ConfigParameter& parameter : axes.parameters) {
    if (varies(parameter) && !is_budget_number(parameter)) {
      shown.push_back(&parameter);
    }
  }
  if (shown.empty() && !axes.parameters.empty()) {
    shown.push_back(&axes.parameters.front());  // one configuration: say which selector
  }
  return shown;
}

TextTable make_table(const Results& results, TableRows rows) {
  const auto shown = shown_parameters(results.axes);
  const bool grouped = rows != TableRows::all;
  TextTable table{{{}}, shown.size() + (grouped ? 1 : 0)};
  if (grouped) {
    table.lines.front().emplace_back(rows == TableRows::by_capture ? "capture" : "layer");
  }
  for (const ConfigParameter* parameter : shown) {
    table.lines.front().push_back(parameter->name);
  }
  for (const TableMetric& metric : table_metrics()) {
    table.lines.front().emplace_back(metric.title);
  }
  for (const Group& group : groups(results.axes, rows)) {
    for (Index config = 0; config < results.axes.n_configs(); ++config) {
      std::vector<std::string>& line = table.lines.emplace_back();
      if (grouped) {
        line.push_back(group.name);
      }
      for (const ConfigParameter* parameter : shown) {
        const std::string& value = parameter->values[static_cast<std::size_t>(config)];
        line.push_back(value.empty() ? "-" : value);
      }
      for (const TableMetric& metric : table_metrics()) {
        line.push_back(number(reduce(results, metric, config, group)));
      }
    }
  }
  if (table.width() > usual_width) {
    for (std::string& title : table.lines.front()) {
      title = short_name(title);
    }
  }
  return table;
}

/// Largest budget in keys; 0 if all are percentages.
double largest_budget(const ResultsAxes& axes) {
  double largest = 0;
  const ConfigParameter* keys = axes.parameter("budget_keys");
  if (keys != nullptr) {
    for (const std::string& value : keys->values) {
      largest = std::max(largest, value.empty() ? 0.0 : std::stod(value));
    }
  }
  return largest;
}

/// True if two configurations were measured on different numbers of rows of one layer.
bool rows_differ(const Results& results) {
  const ResultsAxes& axes = results.axes;
  const auto active = results.column(cell_column(CellCount::n_rows_active));
  const Index per_config = axes.n_captures() * axes.n_layers() * axes.n_q_heads;
  for (Index i = 0; i < axes.n_values(); ++i) {
    const float value = active[static_cast<std::size_t>(i)];
    const float first = active[static_cast<std::size_t>(i % per_config)];
    if (!std::isnan(value) && !std::isnan(first) && value != first) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string results_table(const Results& results, TableRows rows) {
  std::string text = make_table(results, rows).text();
  text += "\n";
  text += legend;
  if (rows_differ(results)) {
    const double budget = largest_budget(results.axes);
    const bool helps = budget >= static_cast<double>(results.constants.min_history);
    text += fmt::format(
        "note: the configurations were measured on different rows (chunks whose history fits in "
        "the "
        "budget do not count),\nso lines are comparable only where rows agree{}\n",
        helps ? fmt::format(
                    "; for equal rows use --min_history {:.0f}, one more than the largest budget",
                    budget + 1)
              : "");
  }
  return text;
}

}  // namespace quoka
