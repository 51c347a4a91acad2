#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quoka/hdf5/group.hpp"

namespace quoka {

/// Attributes of one variable of a results file.
struct VariableText {
  std::string_view long_name = "";
  std::string_view comment = "";      ///< the formula; left out if empty
  std::string_view better = "";       ///< left out if empty
  std::string_view coordinates = "";  ///< names of further coordinates, separated by spaces
  std::string_view units = "1";       ///< left out if empty
};

/// Writes variables on named dimensions into one group, by the netCDF-4 rules of
/// docs/results-format.md: a dimension scale on every axis, text of variable length, NaN as fill.
class AxisWriter {
 public:
  explicit AxisWriter(Hdf5Group group) : group_(std::move(group)) {}

  /// A dimension with its labels.
  void add_dimension(const std::string& name, std::span<const std::string> labels,
                     std::string_view long_name);
  void add_dimension(const std::string& name, std::span<const std::int64_t> labels,
                     std::string_view long_name);

  /// A variable on dimensions that exist; values in C order.
  template <typename T>
  void add(const std::string& name, const std::vector<std::string>& dimensions,
           std::span<const T> values, const VariableText& text);
  void add_texts(const std::string& name, const std::vector<std::string>& dimensions,
                 std::span<const std::string> values, const VariableText& text);

  /// One text without dimensions.
  void add_text(const std::string& name, const std::string& value);

  [[nodiscard]] const Hdf5Group& group() const { return group_; }

 private:
  [[nodiscard]] std::vector<Index> shape_of(const std::vector<std::string>& dimensions) const;
  void describe(const Hdf5Dataset& dataset, const std::vector<std::string>& dimensions,
                const VariableText& text) const;

  Hdf5Group group_;
  std::map<std::string, Hdf5Dataset, std::less<>> scales_;
};

}  // namespace quoka
