#pragma once

#include <cstdint>

namespace quoka {

/// Owns one HDF5 identifier (file, group, dataset, type, ...) and closes it at the end of its life.
///
/// The number is HDF5's hid_t, spelled out so that users of the library need no HDF5 header.
class Hdf5Id {
 public:
  using Value = std::int64_t;
  using Close = int (*)(Value);

  Hdf5Id() = default;
  Hdf5Id(Value value, Close close) : value_(value), close_(close) {}
  ~Hdf5Id() { reset(); }
  Hdf5Id(const Hdf5Id&) = delete;
  Hdf5Id& operator=(const Hdf5Id&) = delete;
  Hdf5Id(Hdf5Id&& other) noexcept : value_(other.release()), close_(other.close_) {}
  Hdf5Id& operator=(Hdf5Id&& other) noexcept;

  [[nodiscard]] Value get() const { return value_; }

  /// Gives the identifier up without closing it.
  Value release() noexcept;

 private:
  void reset() noexcept;

  Value value_ = -1;
  Close close_ = nullptr;
};

}  // namespace quoka
