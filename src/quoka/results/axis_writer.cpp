#include "quoka/results/axis_writer.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace quoka {
namespace {

constexpr Index max_chunk_elements = 1 << 17;  // at most 1 MiB of float64: HDF5's chunk cache

template <typename T>
constexpr ElementType element_type = ElementType::other;
template <>
constexpr ElementType element_type<float> = ElementType::float32;
template <>
constexpr ElementType element_type<double> = ElementType::float64;
template <>
constexpr ElementType element_type<std::int64_t> = ElementType::int64;
template <>
constexpr ElementType element_type<std::int32_t> = ElementType::int32;

/// Whole trailing axes as far as they fit.
std::vector<Index> chunk_shape(const std::vector<Index>& shape) {
  std::vector<Index> chunk = shape;
  Index room = max_chunk_elements;
  for (auto extent = chunk.rbegin(); extent != chunk.rend(); ++extent) {
    *extent = std::clamp<Index>(*extent, 1, room);
    room = std::max<Index>(1, room / *extent);
  }
  return chunk;
}

void write_text(const Hdf5Dataset& dataset, const std::string& name, std::string_view text) {
  if (!text.empty()) {
    dataset.write_text_attribute(name, text);
  }
}

}  // namespace

void AxisWriter::add_dimension(const std::string& name, std::span<const std::string> labels,
                               std::string_view long_name) {
  Hdf5Dataset scale = group_.create_texts(name, {std::ssize(labels)}, labels);
  scale.make_scale(name);
  write_text(scale, "long_name", long_name);
  scales_.emplace(name, std::move(scale));
}

void AxisWriter::add_dimension(const std::string& name, std::span<const std::int64_t> labels,
                               std::string_view long_name) {
  Hdf5Dataset scale = group_.create_dataset(name, ElementType::int64, {std::ssize(labels)});
  scale.write(labels);
  scale.make_scale(name);
  write_text(scale, "long_name", long_name);
  scales_.emplace(name, std::move(scale));
}

std::vector<Index> AxisWriter::shape_of(const std::vector<std::string>& dimensions) const {
  std::vector<Index> shape;
  for (const std::string& dimension : dimensions) {
    shape.push_back(scales_.at(dimension).n_elements());
  }
  return shape;
}

void AxisWriter::describe(const Hdf5Dataset& dataset, const std::vector<std::string>& dimensions,
                          const VariableText& text) const {
  for (std::size_t axis = 0; axis < dimensions.size(); ++axis) {
    dataset.attach_scale(static_cast<Index>(axis), scales_.at(dimensions[axis]));
  }
  write_text(dataset, "long_name", text.long_name);
  write_text(dataset, "units", text.units);
  write_text(dataset, "comment", text.comment);
  write_text(dataset, "better", text.better);
  write_text(dataset, "coordinates", text.coordinates);
}

template <typename T>
void AxisWriter::add(const std::string& name, const std::vector<std::string>& dimensions,
                     std::span<const T> values, const VariableText& text) {
  const std::vector<Index> shape = shape_of(dimensions);
  DatasetOptions options;
  options.chunk = chunk_shape(shape);
  options.fletcher32 = true;
  if constexpr (std::is_floating_point_v<T>) {
    options.fill = std::numeric_limits<double>::quiet_NaN();
  }
  const Hdf5Dataset dataset = group_.create_dataset(name, element_type<T>, shape, options);
  dataset.write(values);
  describe(dataset, dimensions, text);
  if constexpr (std::is_floating_point_v<T>) {
    dataset.write_attribute("_FillValue", std::numeric_limits<T>::quiet_NaN());
  }
}

template void AxisWriter::add(const std::string&, const std::vector<std::string>&,
                              std::span<const float>, const VariableText&);
template void AxisWriter::add(const std::string&, const std::vector<std::string>&,
                              std::span<const double>, const VariableText&);
template void AxisWriter::add(const std::string&, const std::vector<std::string>&,
                              std::span<const std::int64_t>, const VariableText&);
template void AxisWriter::add(const std::string&, const std::vector<std::string>&,
                              std::span<const std::int32_t>, const VariableText&);

void AxisWriter::add_texts(const std::string& name, const std::vector<std::string>& dimensions,
                           std::span<const std::string> values, const VariableText& text) {
  VariableText unitless = text;
  unitless.units = "";
  describe(group_.create_texts(name, shape_of(dimensions), values), dimensions, unitless);
}

void AxisWriter::add_text(const std::string& name, const std::string& value) {
  group_.create_texts(name, {}, std::span(&value, 1));
}

}  // namespace quoka
