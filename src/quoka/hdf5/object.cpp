#include "quoka/hdf5/object.hpp"

#include <cstdint>
#include <limits>
#include <vector>

#include "quoka/hdf5/detail/api.hpp"

namespace quoka {
namespace {

using hdf5_detail::call;
using hdf5_detail::describe;

constexpr std::size_t max_text_bytes = 1 << 20;
constexpr std::size_t max_written_text_bytes = 60 << 10;  // old-format attributes end at 64 KiB

// An open scalar attribute and its type.
struct OpenAttribute {
  Hdf5Id attribute;
  Hdf5Id type;
  std::string where;
};

OpenAttribute open_scalar(const Hdf5Object& object, const std::string& name) {
  require<FormatError>(object.has_attribute(name),
                       "{}: attribute '{}' is missing (nothing is guessed); write it",
                       object.where(), name);
  OpenAttribute open;
  open.where = fmt::format("{}: attribute '{}'", object.where(), name);
  open.attribute = {
      call<FormatError>(open.where, "open it", H5Aopen, object.id(), name.c_str(), H5P_DEFAULT),
      H5Aclose};
  open.type = {call<FormatError>(open.where, "get its type", H5Aget_type, open.attribute.get()),
               H5Tclose};
  const Hdf5Id space(
      call<FormatError>(open.where, "get its dataspace", H5Aget_space, open.attribute.get()),
      H5Sclose);
  const hssize_t n_values = H5Sget_simple_extent_npoints(space.get());
  require<FormatError>(n_values == 1, "{} has {} values instead of 1; write it as a scalar",
                       open.where, n_values);
  return open;
}

[[noreturn]] void throw_wrong_type(const OpenAttribute& open, std::string_view expected) {
  throw FormatError(fmt::format("{} has type {} instead of {}; write it with that type", open.where,
                                describe(open.type.get()), expected));
}

template <typename T>
T read_integer(const OpenAttribute& open, std::string_view expected) {
  if (H5Tget_class(open.type.get()) != H5T_INTEGER || H5Tget_size(open.type.get()) > 8) {
    throw_wrong_type(open, expected);
  }
  const auto checked = [&](auto value) {
    require<FormatError>(std::in_range<T>(value), "{} is {}, which does not fit into {}",
                         open.where, value, expected);
    return static_cast<T>(value);
  };
  if (H5Tget_sign(open.type.get()) == H5T_SGN_NONE) {
    std::uint64_t value = 0;
    call<FormatError>(open.where, "read it", H5Aread, open.attribute.get(), H5T_NATIVE_UINT64,
                      &value);
    return checked(value);
  }
  std::int64_t value = 0;
  call<FormatError>(open.where, "read it", H5Aread, open.attribute.get(), H5T_NATIVE_INT64, &value);
  return checked(value);
}

double read_double(const OpenAttribute& open) {
  if (hdf5_detail::classify(open.type.get()) != ElementType::float64) {
    throw_wrong_type(open, "float64");
  }
  double value = 0;
  call<FormatError>(open.where, "read it", H5Aread, open.attribute.get(), H5T_NATIVE_DOUBLE,
                    &value);
  return value;
}

std::string read_variable_text(const OpenAttribute& open) {
  char* text = nullptr;
  const Hdf5Id memory_type = hdf5_detail::make_text_type();
  H5Tset_cset(memory_type.get(), H5Tget_cset(open.type.get()));
  call<FormatError>(open.where, "read it", H5Aread, open.attribute.get(), memory_type.get(), &text);
  const std::string copy(text == nullptr ? "" : text);
  H5free_memory(text);
  return copy;
}

std::string read_text(const OpenAttribute& open) {
  if (H5Tget_class(open.type.get()) != H5T_STRING) {
    throw_wrong_type(open, "text");
  }
  if (H5Tis_variable_str(open.type.get()) > 0) {
    return read_variable_text(open);
  }
  const std::size_t size = H5Tget_size(open.type.get());
  require<FormatError>(size <= max_text_bytes, "{} has {} bytes of text, more than {}", open.where,
                       size, max_text_bytes);
  std::string text(size, '\0');
  call<FormatError>(open.where, "read it", H5Aread, open.attribute.get(), open.type.get(),
                    text.data());
  text.resize(std::min(text.find('\0'), text.size()));
  if (H5Tget_strpad(open.type.get()) == H5T_STR_SPACEPAD) {
    text.resize(text.find_last_not_of(' ') + 1);
  }
  return text;
}

void write_scalar(const Hdf5Object& object, const std::string& name, hid_t type,
                  const void* value) {
  const std::string where = fmt::format("{}: attribute '{}'", object.where(), name);
  const Hdf5Id space(call<IoError>(where, "create a dataspace", H5Screate, H5S_SCALAR), H5Sclose);
  const Hdf5Id attribute(call<IoError>(where, "create it", H5Acreate2, object.id(), name.c_str(),
                                       type, space.get(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  call<IoError>(where, "write it", H5Awrite, attribute.get(), type, value);
}

}  // namespace

bool Hdf5Object::has_attribute(const std::string& name) const {
  return call<FormatError>(where_, "look for attribute '" + name + "'", H5Aexists, id_.get(),
                           name.c_str()) > 0;
}

template <typename T>
T Hdf5Object::attribute(const std::string& name) const {
  const OpenAttribute open = open_scalar(*this, name);
  if constexpr (std::is_same_v<T, std::string>) {
    return read_text(open);
  } else if constexpr (std::is_same_v<T, double>) {
    return read_double(open);
  } else {
    return read_integer<T>(open, name_of(hdf5_detail::element_type_of<T>()));
  }
}

template std::int64_t Hdf5Object::attribute(const std::string&) const;
template std::int32_t Hdf5Object::attribute(const std::string&) const;
template std::uint32_t Hdf5Object::attribute(const std::string&) const;
template std::uint8_t Hdf5Object::attribute(const std::string&) const;
template double Hdf5Object::attribute(const std::string&) const;
template std::string Hdf5Object::attribute(const std::string&) const;

template <typename T>
void Hdf5Object::write_attribute(const std::string& name, T value) const {
  const Hdf5Id type = hdf5_detail::make_type(hdf5_detail::element_type_of<T>());
  write_scalar(*this, name, type.get(), &value);
}

template void Hdf5Object::write_attribute(const std::string&, std::int64_t) const;
template void Hdf5Object::write_attribute(const std::string&, std::int32_t) const;
template void Hdf5Object::write_attribute(const std::string&, std::uint32_t) const;
template void Hdf5Object::write_attribute(const std::string&, std::uint8_t) const;
template void Hdf5Object::write_attribute(const std::string&, float) const;
template void Hdf5Object::write_attribute(const std::string&, double) const;

void Hdf5Object::write_text_attribute(const std::string& name, std::string_view text) const {
  require<IoError>(
      text.size() <= max_written_text_bytes,
      "{}: attribute '{}' would have {} bytes, more than {} (old-format attributes end "
      "at 64 KiB); store long text as a dataset",
      where_, name, text.size(), max_written_text_bytes);
  const std::string padded = text.empty() ? std::string(1, '\0') : std::string(text);
  const Hdf5Id type(call<IoError>(where_, "copy a type", H5Tcopy, H5T_C_S1), H5Tclose);
  call<IoError>(where_, "set the size of a type", H5Tset_size, type.get(), padded.size());
  call<IoError>(where_, "set the padding of a type", H5Tset_strpad, type.get(), H5T_STR_NULLPAD);
  call<IoError>(where_, "set the character set of a type", H5Tset_cset, type.get(), H5T_CSET_UTF8);
  write_scalar(*this, name, type.get(), padded.data());
}

}  // namespace quoka
