#include "quoka_bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "quoka/core/atomic_file.hpp"
#include "quoka/hdf5/file.hpp"
#include "quoka/results/axis_writer.hpp"

namespace quoka::apps {
namespace {

constexpr double milli = 1e-3;

std::string json_text(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
    }
    result += static_cast<unsigned char>(c) < 0x20 ? fmt::format("\\u{:04x}", static_cast<int>(c))
                                                   : std::string(1, c);
  }
  return result + '"';
}

std::string json_number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

/// Four digits, and plain numbers rather than exponents.
std::string printed(double value) {
  if (std::isnan(value)) {
    return "-";
  }
  if (value == std::floor(value) && std::abs(value) < 1e9) {
    return fmt::format("{:.0f}", value);
  }
  const int digits = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(3 - digits, 0, 6));
}

std::string heading(const Quantity& quantity) {
  return quantity.unit == "1" ? quantity.name
                              : fmt::format("{} [{}]", quantity.name, quantity.unit);
}

}  // namespace

void Report::set_setting(const std::string& name, const std::string& value) {
  settings_.emplace_back(name, value);
}

void Report::begin_case(const std::string& label) {
  cases_.push_back(label);
  for (Column& column : columns_) {
    column.values.push_back(std::numeric_limits<double>::quiet_NaN());
  }
}

void Report::set(const Quantity& quantity, double value, Shown shown) {
  auto found = std::ranges::find(columns_, quantity.name,
                                 [](const Column& column) { return column.quantity.name; });
  if (found == columns_.end()) {
    found = columns_.insert(
        found, {quantity, shown,
                std::vector<double>(cases_.size(), std::numeric_limits<double>::quiet_NaN())});
  }
  found->values.back() = value;
}

void Report::set_times(const std::string& name, const std::string& meaning,
                       const Samples& seconds) {
  set({name, "ms", meaning + ", median"}, median(seconds) / milli);
  set({name + "_min", "ms", meaning + ", shortest"}, smallest(seconds) / milli, Shown::in_file);
  set({name + "_max", "ms", meaning + ", longest"}, largest(seconds) / milli, Shown::in_file);
}

void Report::set_fact(const Quantity& quantity, double value) {
  facts_.emplace_back(quantity, value);
}

std::string Report::text() const {
  std::string result;
  for (const auto& [name, value] : settings_) {
    result += fmt::format("{}: {}\n", name, value);
  }
  std::vector<std::vector<std::string>> table{{"case"}};
  table.front().insert(table.front().end(), cases_.begin(), cases_.end());
  for (const Column& column : columns_) {
    if (column.shown == Shown::in_table) {
      std::vector<std::string>& cells = table.emplace_back();
      cells.push_back(heading(column.quantity));
      std::ranges::transform(column.values, std::back_inserter(cells), printed);
    }
  }
  for (std::size_t line = 0; !cases_.empty() && line <= cases_.size(); ++line) {
    result += line == 0 ? "\n" : "";
    for (const std::vector<std::string>& cells : table) {
      const std::size_t width = std::ranges::max(cells, {}, &std::string::size).size();
      result += &cells == &table.front() ? fmt::format("{:<{}}", cells[line], width)
                                         : fmt::format("  {:>{}}", cells[line], width);
    }
    result += '\n';
  }
  result += facts_.empty() ? "" : "\n";
  for (const auto& [quantity, value] : facts_) {
    result += fmt::format("{}: {} {}({})\n", quantity.name, printed(value),
                          quantity.unit == "1" ? "" : quantity.unit + " ", quantity.meaning);
  }
  return result;
}

std::string Report::json() const {
  std::vector<std::string> settings;
  for (const auto& [name, value] : settings_) {
    settings.push_back(fmt::format("{}: {}", json_text(name), json_text(value)));
  }
  std::vector<std::string> facts;
  for (const auto& [quantity, value] : facts_) {
    facts.push_back(fmt::format("{}: {}", json_text(quantity.name), json_number(value)));
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    std::string line = "\"case\": " + json_text(cases_[i]);
    for (const Column& column : columns_) {
      line +=
          fmt::format(", {}: {}", json_text(column.quantity.name), json_number(column.values[i]));
    }
    lines.push_back("{" + line + "}");
  }
  return fmt::format(
      "{{\n\"program\": \"quoka-bench\",\n\"verb\": {},\n\"settings\": {{{}}},\n\"facts\": "
      "{{{}}},\n\"cases\": [\n{}\n]\n}}\n",
      json_text(verb_), fmt::join(settings, ", "), fmt::join(facts, ", "), fmt::join(lines, ",\n"));
}

void Report::write(const std::filesystem::path& path) const {
  Hdf5File file = Hdf5File::create_in_memory();
  {
    AxisWriter writer(file.root());
    const Hdf5Group& root = writer.group();
    root.write_text_attribute("Conventions", "CF-1.8");
    root.write_text_attribute("title", "Time and memory measured by quoka-bench " + verb_);
    root.write_text_attribute("format", "quoka-bench");
    root.write_attribute<std::int64_t>("format_version", 1);
    root.write_text_attribute("verb", verb_);
    for (const auto& [name, value] : settings_) {
      root.write_text_attribute(name, value);
    }
    for (const auto& [quantity, value] : facts_) {
      root.write_attribute(quantity.name, value);
    }
    writer.add_dimension("case", cases_, "what was measured");
    for (const Column& column : columns_) {
      writer.add<double>(column.quantity.name, {"case"}, column.values,
                         {.long_name = column.quantity.meaning, .units = column.quantity.unit});
    }
  }
  write_file_atomically(path, file.image());
}

}  // namespace quoka::apps
