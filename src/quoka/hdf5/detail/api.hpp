#pragma once

// Private to the hdf5 room: the HDF5 header and the one way to call it.

#include <hdf5.h>
#include <hdf5_hl.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "quoka/core/error.hpp"
#include "quoka/hdf5/dataset.hpp"
#include "quoka/hdf5/id.hpp"

namespace quoka::hdf5_detail {

static_assert(std::is_same_v<hid_t, Hdf5Id::Value> && std::is_same_v<herr_t, int>);

// Must run in every thread before its first HDF5 call (call() does it, except that constants such
// as H5T_IEEE_F32LE, which are calls too, must not come first): automatic error printing off, which
// is a setting per thread; no plug-ins; no clean-up at exit, which crashes after a failed write.
void prepare_thread();

// The error stack of the last failed call as one line, innermost cause first.
std::string error_stack();

// Calls an HDF5 function; a negative result becomes an exception "<where>: cannot <what>
// (<cause>)".
template <typename ErrorType, typename Function, typename... Args>
auto call(std::string_view where, std::string_view what, Function function, Args... args) {
  prepare_thread();
  const auto result = function(args...);
  if (result < 0) {
    throw ErrorType(fmt::format("{}: cannot {} (HDF5: {})", where, what, error_stack()));
  }
  return result;
}

template <typename ErrorType>
Hdf5Id dataspace_of(std::string_view where, hid_t dataset) {
  return {call<ErrorType>(where, "get its dataspace", H5Dget_space, dataset), H5Sclose};
}

// The stored type that holds values of a C++ type.
template <typename T>
constexpr ElementType element_type_of() {
  if constexpr (std::is_same_v<T, double>) {
    return ElementType::float64;
  } else if constexpr (std::is_same_v<T, float>) {
    return ElementType::float32;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return ElementType::int64;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return ElementType::int32;
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    return ElementType::uint32;
  } else if constexpr (std::is_same_v<T, std::uint16_t>) {
    return ElementType::uint16;
  } else {
    static_assert(std::is_same_v<T, std::uint8_t>);
    return ElementType::uint8;
  }
}

// A new type for one of the numeric element types.
Hdf5Id make_type(ElementType type);

// Variable-length UTF-8.
Hdf5Id make_text_type();

// Classifies by class, size, order and bit fields.
ElementType classify(hid_t type);

// How messages name a type of a file, for example "float32", "enum", "big-endian integer of 4
// bytes".
std::string describe(hid_t type);

}  // namespace quoka::hdf5_detail
