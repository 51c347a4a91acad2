#pragma once

#include <string>
#include <string_view>

#include "quoka/core/matrix.hpp"
#include "quoka/hdf5/id.hpp"

namespace quoka {

/// What groups and datasets have in common: a place in a file, and attributes.
///
/// Readers throw FormatError for everything that is wrong in the file, writers throw IoError.
class Hdf5Object {
 public:
  /// "FILE: /path/in/file", the way every message names the place.
  [[nodiscard]] const std::string& where() const { return where_; }
  [[nodiscard]] Hdf5Id::Value id() const { return id_.get(); }

  [[nodiscard]] bool has_attribute(const std::string& name) const;

  /// Value of a scalar attribute.
  ///
  /// T is std::int64_t, std::int32_t, std::uint32_t, std::uint8_t, double or std::string. An
  /// integer may be stored with any width if its value fits into T; a double must be stored as
  /// float64; text may be of fixed or variable length, at most 1 MiB. Throws: FormatError naming
  /// the attribute if it is missing or of another type, with both types.
  template <typename T>
  [[nodiscard]] T attribute(const std::string& name) const;

  /// Writes a scalar attribute that does not exist yet; floats little-endian IEEE, text
  /// fixed-length UTF-8. T is std::int64_t, std::int32_t, std::uint32_t, std::uint8_t, float or
  /// double. Throws: IoError; also for text above 60 KiB, which must be stored as a dataset.
  template <typename T>
  void write_attribute(const std::string& name, T value) const;
  void write_text_attribute(const std::string& name, std::string_view text) const;

 protected:
  Hdf5Object(Hdf5Id id, std::string where) : id_(std::move(id)), where_(std::move(where)) {}

 private:
  Hdf5Id id_;
  std::string where_;
};

}  // namespace quoka
