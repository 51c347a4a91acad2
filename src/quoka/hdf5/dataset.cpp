#include "quoka/hdf5/dataset.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "quoka/hdf5/detail/api.hpp"

namespace quoka {
namespace {

using hdf5_detail::call;
using hdf5_detail::dataspace_of;
using hdf5_detail::element_type_of;

struct TypeRow {
  std::string_view name;
  Index size;
};

// In the order of the enumerators.
constexpr std::array<TypeRow, 15> type_rows = {{{"float16", 2},
                                                {"bfloat16", 2},
                                                {"float32", 4},
                                                {"float64", 8},
                                                {"uint8", 1},
                                                {"uint16", 2},
                                                {"uint32", 4},
                                                {"uint64", 8},
                                                {"int8", 1},
                                                {"int16", 2},
                                                {"int32", 4},
                                                {"int64", 8},
                                                {"text", 0},
                                                {"opaque", 0},
                                                {"an unusual type", 0}}};

Index product(const std::vector<Index>& shape) {
  Index n = 1;
  for (const Index extent : shape) {
    n *= extent;  // cannot overflow: checked when the dataset was opened
  }
  return n;
}

DatasetBlock whole(const DatasetInfo& info) {
  return {std::vector<Index>(info.shape.size(), 0), info.shape};
}

void check_block(const Hdf5Dataset& dataset, const DatasetBlock& block, std::size_t n_bytes) {
  const DatasetInfo& info = dataset.info();
  bool inside = block.offset.size() == info.shape.size() && block.count.size() == info.shape.size();
  for (std::size_t axis = 0; inside && axis < info.shape.size(); ++axis) {
    inside = block.offset[axis] >= 0 && block.count[axis] >= 0 &&
             block.offset[axis] <= info.shape[axis] - block.count[axis];
  }
  require<ShapeError>(inside, "{}: a block of {} at {} does not lie in the shape {}",
                      dataset.where(), shape_text(block.count), shape_text(block.offset),
                      shape_text(info.shape));
  const Index expected = product(block.count) * size_of(info.type);
  require<ShapeError>(std::cmp_equal(n_bytes, expected), "{}: a block of {} has {} bytes, not {}",
                      dataset.where(), shape_text(block.count), expected, n_bytes);
}

// Selects the block in the file and makes a memory space of the same rank (another rank is many
// times slower with chunked data).
struct Selection {
  Hdf5Id memory;
  Hdf5Id file;
};

template <typename ErrorType>
Selection select(const Hdf5Dataset& dataset, const DatasetBlock& block) {
  Selection selection;
  selection.file = dataspace_of<ErrorType>(dataset.where(), dataset.id());
  if (block.count.empty()) {
    selection.memory = {
        call<ErrorType>(dataset.where(), "create a dataspace", H5Screate, H5S_SCALAR), H5Sclose};
    return selection;
  }
  const std::vector<hsize_t> offset(block.offset.begin(), block.offset.end());
  const std::vector<hsize_t> count(block.count.begin(), block.count.end());
  selection.memory = {call<ErrorType>(dataset.where(), "create a dataspace", H5Screate_simple,
                                      static_cast<int>(count.size()), count.data(), nullptr),
                      H5Sclose};
  call<ErrorType>(dataset.where(), "select a block", H5Sselect_hyperslab, selection.file.get(),
                  H5S_SELECT_SET, offset.data(), nullptr, count.data(), nullptr);
  return selection;
}

void check_type(const Hdf5Dataset& dataset, ElementType wanted) {
  require<FormatError>(dataset.info().type == wanted,
                       "{} holds {} instead of {}; write it with that type", dataset.where(),
                       name_of(dataset.info().type), name_of(wanted));
}

}  // namespace

std::string_view name_of(ElementType type) {
  return type_rows[static_cast<std::size_t>(type)].name;
}

Index size_of(ElementType type) { return type_rows[static_cast<std::size_t>(type)].size; }

std::string shape_text(std::span<const Index> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Index Hdf5Dataset::n_elements() const { return product(info_.shape); }

void Hdf5Dataset::read_raw(const DatasetBlock& block, std::span<std::byte> bytes) const {
  check_block(*this, block, bytes.size());
  if (bytes.empty()) {
    return;
  }
  const Hdf5Id type(call<FormatError>(where(), "get its type", H5Dget_type, id()), H5Tclose);
  const Selection selection = select<FormatError>(*this, block);
  call<FormatError>(where(), "read it; the file is damaged, copy or make it again", H5Dread, id(),
                    type.get(), selection.memory.get(), selection.file.get(), H5P_DEFAULT,
                    bytes.data());
}

void Hdf5Dataset::write_raw(const DatasetBlock& block, std::span<const std::byte> bytes) const {
  check_block(*this, block, bytes.size());
  if (bytes.empty()) {
    return;
  }
  const Hdf5Id type(call<IoError>(where(), "get its type", H5Dget_type, id()), H5Tclose);
  const Selection selection = select<IoError>(*this, block);
  call<IoError>(where(), "write it; is there space left on the disk?", H5Dwrite, id(), type.get(),
                selection.memory.get(), selection.file.get(), H5P_DEFAULT, bytes.data());
}

template <typename T>
std::vector<T> Hdf5Dataset::read() const {
  return read<T>(whole(info_));
}

template <typename T>
std::vector<T> Hdf5Dataset::read(const DatasetBlock& block) const {
  check_type(*this, element_type_of<T>());
  std::vector<T> values(static_cast<std::size_t>(product(block.count)));
  read_raw(block, std::as_writable_bytes(std::span(values)));
  return values;
}

template <typename T>
void Hdf5Dataset::write(std::span<const T> values) const {
  write<T>(whole(info_), values);
}

template <typename T>
void Hdf5Dataset::write(const DatasetBlock& block, std::span<const T> values) const {
  check_type(*this, element_type_of<T>());
  write_raw(block, std::as_bytes(values));
}

#define QUOKA_INSTANTIATE(T)                                            \
  template std::vector<T> Hdf5Dataset::read() const;                    \
  template std::vector<T> Hdf5Dataset::read(const DatasetBlock&) const; \
  template void Hdf5Dataset::write(std::span<const T>) const;           \
  template void Hdf5Dataset::write(const DatasetBlock&, std::span<const T>) const;
QUOKA_INSTANTIATE(float)
QUOKA_INSTANTIATE(double)
QUOKA_INSTANTIATE(std::int64_t)
QUOKA_INSTANTIATE(std::int32_t)
QUOKA_INSTANTIATE(std::uint32_t)
QUOKA_INSTANTIATE(std::uint16_t)
QUOKA_INSTANTIATE(std::uint8_t)
#undef QUOKA_INSTANTIATE

std::vector<std::string> Hdf5Dataset::read_texts() const {
  check_type(*this, ElementType::text);
  std::vector<char*> pointers(static_cast<std::size_t>(n_elements()), nullptr);
  if (pointers.empty()) {
    return {};
  }
  const Hdf5Id type(call<FormatError>(where(), "get its type", H5Dget_type, id()), H5Tclose);
  const Hdf5Id space = dataspace_of<FormatError>(where(), id());
  call<FormatError>(where(), "read it", H5Dread, id(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                    pointers.data());
  std::vector<std::string> texts;
  for (const char* pointer : pointers) {
    texts.emplace_back(pointer == nullptr ? "" : pointer);
  }
  H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, pointers.data());
  return texts;
}

void Hdf5Dataset::write_texts(std::span<const std::string> texts) const {
  check_type(*this, ElementType::text);
  require<ShapeError>(std::cmp_equal(texts.size(), n_elements()), "{}: {} texts for the shape {}",
                      where(), texts.size(), shape_text(info_.shape));
  if (texts.empty()) {
    return;
  }
  std::vector<const char*> pointers;
  for (const std::string& text : texts) {
    pointers.push_back(text.c_str());
  }
  const Hdf5Id type = hdf5_detail::make_text_type();
  call<IoError>(where(), "write it; is there space left on the disk?", H5Dwrite, id(), type.get(),
                H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data());
}

void Hdf5Dataset::make_scale(const std::string& name) const {
  call<IoError>(where(), "make it a dimension scale", H5DSset_scale, id(), name.c_str());
}

void Hdf5Dataset::attach_scale(Index axis, const Hdf5Dataset& scale) const {
  call<IoError>(where(), "attach the dimension scale " + scale.where(), H5DSattach_scale, id(),
                scale.id(), static_cast<unsigned>(axis));
}

}  // namespace quoka
