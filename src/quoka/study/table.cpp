#include "quoka/study/table.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "quoka/study/chunk_pass.hpp"

namespace quoka {
namespace {

using Labels = std::vector<std::int64_t>;

Labels count_up(Index n) {
  Labels labels(static_cast<std::size_t>(n));
  std::iota(labels.begin(), labels.end(), 0);
  return labels;
}

Labels shifted(const std::vector<Index>& positions, Index by) {
  Labels labels;
  for (const Index position : positions) {
    labels.push_back(position + by);
  }
  return labels;
}

/// First position of each bin over [0, n), moved by an offset.
Labels bins(Index n, Index offset) {
  const Index n_bins = std::min(n, n_position_bins);
  Labels labels;
  for (Index bin = 0; bin < n_bins; ++bin) {
    labels.push_back(offset + bin_begin(bin, n, n_bins));
  }
  return labels;
}

const GeometryVariable& variable(const std::string& name) {
  return *std::ranges::find(geometry_variables(), name, &GeometryVariable::name);
}

}  // namespace

std::vector<GeometryDimension> study_dimensions(const StudyAxes& axes) {
  std::vector<GeometryDimension> dimensions;
  const auto add = [&](std::string name, std::string_view long_name, Labels labels) {
    dimensions.push_back({std::move(name), long_name, std::move(labels)});
  };
  Labels chunks;
  for (Index row = 0; row < axes.n_tokens; row += axes.chunk_size) {
    chunks.push_back(axes.q_offset + row);
  }
  add("layer", "layer index in the model", shifted(axes.layers, 0));
  add("q_head", "query head", count_up(axes.n_q_heads));
  add("kv_head", "key and value head", count_up(axes.n_kv_heads));
  add("chunk", "position of the chunk's first query", std::move(chunks));
  add("query", "position of a sampled query", shifted(axes.query_samples, axes.q_offset));
  add("key", "position of a sampled key", shifted(axes.key_samples, 0));
  add("similarity_class", "eighth of a chunk's queries by cosine with the mean query, 0 = lowest",
      count_up(n_similarity_classes));
  add("key_bin", "first position of a range of keys", bins(axes.q_offset + axes.n_tokens, 0));
  add("query_bin", "first position of a range of queries", bins(axes.n_tokens, axes.q_offset));
  add("top_percent", "percentage of the keys", Labels(top_percents.begin(), top_percents.end()));
  add("deviation_bin", "bin of a deviation, around 0.02 (deviation_bin - 50)",
      count_up(n_deviation_bins));
  add("component", "principal component, 0 = largest variance", count_up(n_components));
  add("channel", "channel of a query or key", count_up(axes.head_dim));
  return dimensions;
}

GeometryTable::GeometryTable(std::vector<GeometryDimension> dimensions)
    : dimensions_(std::move(dimensions)) {
  for (const GeometryVariable& variable : geometry_variables()) {
    Index n = 1;
    for (const std::string& name : variable.dimensions) {
      n *= dimension(name).size();
    }
    values_.emplace(variable.name, std::vector<double>(static_cast<std::size_t>(n),
                                                       std::numeric_limits<double>::quiet_NaN()));
  }
}

const GeometryDimension& GeometryTable::dimension(const std::string& name) const {
  return *std::ranges::find(dimensions_, name, &GeometryDimension::name);
}

std::span<const double> GeometryTable::values(const std::string& name) const {
  return values_.at(name);
}

IndexRange GeometryTable::place(const std::string& name, Index layer, Index head) const {
  const Index n_layers = dimension("layer").size();
  const Index n_heads = dimension(variable(name).dimensions[1]).size();
  const Index size = std::ssize(values_.at(name)) / (n_layers * n_heads);
  const Index begin = (layer * n_heads + head) * size;
  return {begin, begin + size};
}

void GeometryTable::forget(Index layer) {
  const Index n_layers = dimension("layer").size();
  for (auto& [name, values] : values_) {
    const Index size = std::ssize(values) / n_layers;
    std::fill_n(values.begin() + layer * size, size, std::numeric_limits<double>::quiet_NaN());
  }
}

std::span<double> GeometryTable::head(const std::string& name, Index layer, Index head) {
  const IndexRange range = place(name, layer, head);
  return std::span(values_.at(name))
      .subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
}

std::span<const double> GeometryTable::head(const std::string& name, Index layer,
                                            Index head) const {
  const IndexRange range = place(name, layer, head);
  return std::span(values_.at(name))
      .subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
}

}  // namespace quoka
