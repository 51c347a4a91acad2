#include "quoka/results/export.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <cmath>
#include <vector>

#include "quoka/core/error.hpp"
#include "quoka/metrics/columns.hpp"

namespace quoka {
namespace {

/// A field as RFC 4180 wants it: quoted where it holds a comma, a quote or a line break.
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    return text;
  }
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + "\"";
}

std::string field(float value) { return std::isnan(value) ? "" : fmt::format("{}", value); }

std::vector<Index> column_numbers(std::span<const std::string> names) {
  std::vector<Index> numbers;
  for (const std::string& name : names) {
    numbers.push_back(find_cell_column(name));
    require<ConfigError>(numbers.back() >= 0,
                         "column \"{}\" is not known; the names are the variables of the results "
                         "file, for example out_rel_l2_mean",
                         name);
  }
  if (names.empty()) {
    for (Index c = 0; c < std::ssize(cell_columns()); ++c) {
      numbers.push_back(c);
    }
  }
  return numbers;
}

/// The fields that all heads of a cell share.
std::string labels(const ResultsAxes& axes, CellPlace place) {
  const auto config = static_cast<std::size_t>(place.config);
  const ResultsLayer& facts = axes.facts(place.capture, place.layer);
  std::string line = fmt::format("{},{},{},{},{}", axes.config_ids[config],
                                 field(axes.captures[static_cast<std::size_t>(place.capture)].stem),
                                 axes.layers[static_cast<std::size_t>(place.layer)],
                                 field(facts.kind), facts.softmax_scale);
  for (const ConfigParameter& parameter : axes.parameters) {
    line += "," + field(parameter.values[config]);
  }
  return line;
}

void write_cell(const Results& results, CellPlace place, std::span<const Index> columns,
                std::ostream& out) {
  const std::string shared = labels(results.axes, place);
  const Index n_heads = results.axes.facts(place.capture, place.layer).shape.n_q_heads;
  for (Index head = 0; head < n_heads; ++head) {
    fmt::print(out, "{},{}", shared, head);
    for (const Index column : columns) {
      fmt::print(out, ",{}", field(results.value(column, place, head)));
    }
    out << '\n';
  }
}

}  // namespace

void write_csv(const Results& results, std::span<const std::string> columns, std::ostream& out) {
  const std::vector<Index> numbers = column_numbers(columns);
  const ResultsAxes& axes = results.axes;
  out << "config,capture,layer,layer_kind,softmax_scale";
  for (const ConfigParameter& parameter : axes.parameters) {
    out << ',' << parameter.name;
  }
  out << ",q_head";
  for (const Index column : numbers) {
    out << ',' << cell_columns()[static_cast<std::size_t>(column)].name;
  }
  out << '\n';
  for (Index config = 0; config < axes.n_configs(); ++config) {
    for (Index cell = 0; cell < axes.n_captures() * axes.n_layers(); ++cell) {
      const CellPlace place{config, cell / axes.n_layers(), cell % axes.n_layers()};
      if (axes.facts(place.capture, place.layer).present) {
        write_cell(results, place, numbers, out);
      }
    }
  }
}

}  // namespace quoka
