#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// One dimension of a geometry file; what a label is, is in its long_name.
struct GeometryDimension {
  std::string name;
  std::string_view long_name;
  std::vector<std::int64_t> labels;

  [[nodiscard]] Index size() const { return std::ssize(labels); }
};

/// One variable of a geometry file. Its first two dimensions are layer and q_head or kv_head.
struct GeometryVariable {
  std::string name;
  std::vector<std::string> dimensions;
  std::string_view long_name;
  std::string_view comment;  ///< the formula; may be empty
  std::string_view units = "1";
};

/// Every variable, in the order of the file.
const std::vector<GeometryVariable>& geometry_variables();

/// The values of all variables on these dimensions; NaN until they are set.
class GeometryTable {
 public:
  explicit GeometryTable(std::vector<GeometryDimension> dimensions);

  [[nodiscard]] const std::vector<GeometryDimension>& dimensions() const { return dimensions_; }
  [[nodiscard]] const GeometryDimension& dimension(const std::string& name) const;

  /// All values of a variable, in C order.
  [[nodiscard]] std::span<const double> values(const std::string& name) const;

  /// The values of one layer (its place, not its index) and head, in C order of the further
  /// dimensions. Different heads may be filled by different threads.
  [[nodiscard]] std::span<double> head(const std::string& name, Index layer, Index head);
  [[nodiscard]] std::span<const double> head(const std::string& name, Index layer,
                                             Index head) const;

  /// Makes every value of a layer NaN: what a layer that failed half-way leaves.
  void forget(Index layer);

  /// Sets the one value of a variable that has no further dimension.
  void set(const std::string& name, Index layer, Index head, double value) {
    this->head(name, layer, head)[0] = value;
  }

 private:
  [[nodiscard]] IndexRange place(const std::string& name, Index layer, Index head) const;

  std::vector<GeometryDimension> dimensions_;
  std::map<std::string, std::vector<double>, std::less<>> values_;
};

/// The dimensions of a study of layers with these sizes; positions are absolute.
struct StudyAxes {
  std::vector<Index> layers;  ///< layer indices
  Index n_q_heads = 0;        ///< largest of all layers
  Index n_kv_heads = 0;
  Index head_dim = 0;  ///< likewise
  Index q_offset = 0;
  Index n_tokens = 0;
  Index chunk_size = 0;              ///< n_tokens for the whole prompt
  std::vector<Index> query_samples;  ///< rows
  std::vector<Index> key_samples;    ///< positions
};
std::vector<GeometryDimension> study_dimensions(const StudyAxes& axes);

/// Shares of the keys for which class_top_share is stored, in percent.
constexpr std::array<std::int64_t, 5> top_percents{1, 5, 10, 25, 50};
/// Principal components that are stored.
constexpr Index n_components = 4;
/// Equal ranges of positions over which shares and means are binned.
constexpr Index n_position_bins = 64;

/// First element of bin b of n elements in n_bins; bin n_bins begins at n.
inline Index bin_begin(Index bin, Index n, Index n_bins) { return bin * n / n_bins; }

}  // namespace quoka
