#pragma once

// Plain HDF5 calls for tests: files are checked with another reader than ours, and broken on
// purpose.

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace quoka::test {

/// Opens the file for reading and writing, runs the edit and closes it.
inline void edit_hdf5(const std::filesystem::path& path, const std::function<void(hid_t)>& edit) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  if (file < 0) {
    throw std::runtime_error("cannot open " + path.string());
  }
  edit(file);
  H5Fclose(file);
}

template <typename T>
hid_t native_type() {
  if constexpr (std::is_same_v<T, double>) {
    return H5T_NATIVE_DOUBLE;
  } else if constexpr (std::is_same_v<T, float>) {
    return H5T_NATIVE_FLOAT;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return H5T_NATIVE_INT64;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return H5T_NATIVE_INT32;
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    return H5T_NATIVE_UINT32;
  } else if constexpr (std::is_same_v<T, std::uint16_t>) {
    return H5T_NATIVE_UINT16;
  } else {
    static_assert(std::is_same_v<T, std::uint8_t>);
    return H5T_NATIVE_UINT8;
  }
}

inline void delete_attribute(hid_t file, const char* object, const char* name) {
  H5Adelete_by_name(file, object, name, H5P_DEFAULT);
}

/// Creates or replaces a scalar attribute of any type.
inline void set_attribute(hid_t file, const char* object, const char* name, hid_t type,
                          const void* value) {
  if (H5Aexists_by_name(file, object, name, H5P_DEFAULT) > 0) {
    delete_attribute(file, object, name);
  }
  const hid_t space = H5Screate(H5S_SCALAR);
  const hid_t attribute =
      H5Acreate_by_name(file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, value);
  H5Aclose(attribute);
  H5Sclose(space);
}

template <typename T>
void set_attribute(hid_t file, const char* object, const char* name, T value) {
  set_attribute(file, object, name, native_type<T>(), &value);
}

/// Fixed-length text, as h5py writes bytes.
inline void set_text(hid_t file, const char* object, const char* name, const std::string& text) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, text.size());
  set_attribute(file, object, name, type, text.data());
  H5Tclose(type);
}

/// Variable-length text, as h5py writes str.
inline void set_variable_text(hid_t file, const char* object, const char* name, const char* text) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  set_attribute(file, object, name, type, &text);
  H5Tclose(type);
}

/// Creates or replaces a dataset; values may be null (nothing is written then).
inline void set_dataset(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape,
                        const void* values, hid_t properties = H5P_DEFAULT) {
  if (H5Lexists(file, name, H5P_DEFAULT) > 0) {
    H5Ldelete(file, name, H5P_DEFAULT);
  }
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
  if (values != nullptr) {
    H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  }
  H5Dclose(dataset);
  H5Sclose(space);
}

/// All values of a dataset, converted by HDF5.
template <typename T>
std::vector<T> raw_values(const std::filesystem::path& path, const char* name) {
  std::vector<T> values;
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  values.resize(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  H5Dread(dataset, native_type<T>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(file);
  return values;
}

}  // namespace quoka::test
