#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "quoka_bench/clock.hpp"

namespace quoka::apps {

/// What a number of a report is.
struct Quantity {
  std::string name;
  std::string unit;
  std::string meaning;
};

/// Whether a column is part of the printed table, or only of JSON and the file.
enum class Shown { in_table, in_file };

/// The measurements of one run: a table with one line per case, and single numbers.
class Report {
 public:
  explicit Report(std::string verb) : verb_(std::move(verb)) {}

  /// A line of text about the run: the processor, a size, ...
  void set_setting(const std::string& name, const std::string& value);

  /// Begins a line of the table; labels are unique.
  void begin_case(const std::string& label);
  /// Fills a column of the line; one that was never filled on a line is NaN there.
  void set(const Quantity& quantity, double value, Shown shown = Shown::in_table);
  /// Fills NAME, NAME_min and NAME_max with milliseconds.
  void set_times(const std::string& name, const std::string& meaning, const Samples& seconds);

  /// A number that belongs to no case.
  void set_fact(const Quantity& quantity, double value);

  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string json() const;
  /// Writes an HDF5 file that netCDF tools open: one variable per column on the dimension "case",
  /// facts and settings as attributes. Throws: IoError.
  void write(const std::filesystem::path& path) const;

 private:
  struct Column {
    Quantity quantity;
    Shown shown;
    std::vector<double> values;
  };

  std::string verb_;
  std::vector<std::pair<std::string, std::string>> settings_;
  std::vector<std::string> cases_;
  std::vector<Column> columns_;
  std::vector<std::pair<Quantity, double>> facts_;
};

}  // namespace quoka::apps
