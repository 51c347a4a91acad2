#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quoka/core/matrix.hpp"
#include "quoka/hdf5/object.hpp"

namespace quoka {

/// Element types, told apart by their bit fields (never by name): bfloat16 is a 16-bit HDF5 float
/// with sign bit 15, 8 exponent bits at 7, 7 mantissa bits at 0, bias 127. All little-endian.
enum class ElementType {
  float16,
  bfloat16,
  float32,
  float64,
  uint8,
  uint16,
  uint32,
  uint64,
  int8,
  int16,
  int32,
  int64,
  text,  ///< variable length
  opaque,
  other,  ///< anything else: big-endian, compound, fixed-length text, ...
};

/// "float16", "bfloat16", ...
std::string_view name_of(ElementType type);

/// Bytes of one element; 0 for text, opaque and other.
Index size_of(ElementType type);

/// What a dataset may be before any of it is read.
struct DatasetLimits {
  Index max_dim = Index{1} << 31;    ///< largest extent of one axis
  Index max_bytes = Index{1} << 40;  ///< largest unpacked size
  double max_ratio = 1000;           ///< largest unpacked size / stored size (filter bombs)
  bool allow_empty = false;          ///< accept extents of 0 and data that was never written
};

/// What the file says about a dataset.
struct DatasetInfo {
  ElementType type = ElementType::other;
  std::vector<Index> shape;  ///< empty for a scalar
  std::vector<Index> chunk;  ///< empty if the layout is not chunked
  Index opaque_size = 0;     ///< bytes per element of an opaque type
};

/// "[9, 2016, 64]"
std::string shape_text(std::span<const Index> shape);

/// How a new dataset is stored.
struct DatasetOptions {
  std::vector<Index> chunk;    ///< empty: contiguous
  bool fletcher32 = false;     ///< checksum per chunk
  int deflate = 0;             ///< 1 to 9: shuffle and deflate; 0: none
  std::optional<double> fill;  ///< value of elements that are never written
};

/// A box of elements: equally many offsets and counts as the dataset has axes.
struct DatasetBlock {
  std::vector<Index> offset;
  std::vector<Index> count;
};

/// An open dataset whose layout, filters, type and size have been checked (see DatasetLimits).
///
/// T is float, double, std::int64_t, std::int32_t, std::uint32_t, std::uint16_t or std::uint8_t,
/// and must be the stored type: nothing is converted.
class Hdf5Dataset : public Hdf5Object {
 public:
  Hdf5Dataset(Hdf5Id id, std::string where, DatasetInfo info)
      : Hdf5Object(std::move(id), std::move(where)), info_(std::move(info)) {}

  [[nodiscard]] const DatasetInfo& info() const { return info_; }
  [[nodiscard]] Index n_elements() const;

  /// Reads the bits of a block as they are stored (both 16-bit float types included).
  ///
  /// Shapes:  bytes must have exactly the size of the block.
  /// Throws: FormatError if HDF5 cannot read it (a damaged chunk, a checksum that does not fit).
  void read_raw(const DatasetBlock& block, std::span<std::byte> bytes) const;
  void write_raw(const DatasetBlock& block, std::span<const std::byte> bytes) const;

  /// Everything, in C order. Throws: FormatError with both types if T is not the stored type.
  template <typename T>
  [[nodiscard]] std::vector<T> read() const;
  template <typename T>
  [[nodiscard]] std::vector<T> read(const DatasetBlock& block) const;

  /// All strings of a variable-length text dataset, in C order. Not for files of strangers: damaged
  /// variable-length data can crash HDF5.
  [[nodiscard]] std::vector<std::string> read_texts() const;

  template <typename T>
  void write(std::span<const T> values) const;
  template <typename T>
  void write(const DatasetBlock& block, std::span<const T> values) const;
  void write_texts(std::span<const std::string> texts) const;

  /// Makes this 1-D dataset a dimension scale of that name (netCDF tools call it a dimension).
  void make_scale(const std::string& name) const;

  /// Attaches a dimension scale to an axis.
  void attach_scale(Index axis, const Hdf5Dataset& scale) const;

 private:
  DatasetInfo info_;
};

}  // namespace quoka
