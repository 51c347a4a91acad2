#include "quoka/hdf5/detail/api.hpp"

#include <array>
#include <mutex>
#include <vector>

namespace quoka::hdf5_detail {
namespace {

herr_t collect_description(unsigned /*depth*/, const H5E_error2_t* entry, void* data) {
  auto& descriptions = *static_cast<std::vector<std::string>*>(data);
  if (entry->desc != nullptr && *entry->desc != '\0') {
    descriptions.emplace_back(entry->desc);
  }
  return 0;
}

// Bit fields of a floating-point type.
struct FloatFields {
  std::size_t size = 0;
  std::size_t sign = 0;
  std::size_t exponent = 0;
  std::size_t exponent_bits = 0;
  std::size_t mantissa = 0;
  std::size_t mantissa_bits = 0;
  std::size_t bias = 0;
  bool operator==(const FloatFields&) const = default;
};

ElementType classify_float(hid_t type) {
  FloatFields found;
  found.size = H5Tget_size(type);
  found.bias = H5Tget_ebias(type);
  if (H5Tget_order(type) != H5T_ORDER_LE || H5Tget_norm(type) != H5T_NORM_IMPLIED ||
      H5Tget_precision(type) != 8 * found.size || H5Tget_offset(type) != 0 ||
      H5Tget_fields(type, &found.sign, &found.exponent, &found.exponent_bits, &found.mantissa,
                    &found.mantissa_bits) < 0) {
    return ElementType::other;
  }
  if (found == FloatFields{2, 15, 10, 5, 0, 10, 15}) {
    return ElementType::float16;
  }
  if (found == FloatFields{2, 15, 7, 8, 0, 7, 127}) {
    return ElementType::bfloat16;
  }
  if (found == FloatFields{4, 31, 23, 8, 0, 23, 127}) {
    return ElementType::float32;
  }
  if (found == FloatFields{8, 63, 52, 11, 0, 52, 1023}) {
    return ElementType::float64;
  }
  return ElementType::other;
}

ElementType classify_integer(hid_t type) {
  const std::size_t size = H5Tget_size(type);
  if ((size > 1 && H5Tget_order(type) != H5T_ORDER_LE) || H5Tget_precision(type) != 8 * size) {
    return ElementType::other;
  }
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (size) {
    case 1:
      return is_signed ? ElementType::int8 : ElementType::uint8;
    case 2:
      return is_signed ? ElementType::int16 : ElementType::uint16;
    case 4:
      return is_signed ? ElementType::int32 : ElementType::uint32;
    case 8:
      return is_signed ? ElementType::int64 : ElementType::uint64;
    default:
      return ElementType::other;
  }
}

Hdf5Id make_half(std::array<std::size_t, 5> fields, std::size_t bias) {
  Hdf5Id type(call<IoError>("HDF5", "copy a type", H5Tcopy, H5T_IEEE_F32LE), H5Tclose);
  call<IoError>("HDF5", "set the fields of a type", H5Tset_fields, type.get(), fields[0], fields[1],
                fields[2], fields[3], fields[4]);
  call<IoError>("HDF5", "set the size of a type", H5Tset_size, type.get(), std::size_t{2});
  call<IoError>("HDF5", "set the bias of a type", H5Tset_ebias, type.get(), bias);
  return type;
}

}  // namespace

void prepare_thread() {
  static std::once_flag once;
  std::call_once(once, [] {
    H5dont_atexit();
    H5PLset_loading_state(0);
  });
  static thread_local bool silent = false;
  if (!silent) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    silent = true;
  }
}

std::string error_stack() {
  std::vector<std::string> descriptions;
  // Upward means from the place of the fault to the function that was called.
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect_description, &descriptions);
  constexpr std::size_t max_lines = 4;  // what follows repeats "can't open file" and the like
  std::string text;
  for (std::size_t i = 0; i < descriptions.size() && i < max_lines; ++i) {
    text += (text.empty() ? "" : "; ") + descriptions[i];
  }
  return text.empty() ? "no further details" : text;
}

Hdf5Id make_type(ElementType type) {
  const auto copy = [](hid_t of) {
    return Hdf5Id(call<IoError>("HDF5", "copy a type", H5Tcopy, of), H5Tclose);
  };
  switch (type) {
    case ElementType::float16:
      return make_half({15, 10, 5, 0, 10}, 15);
    case ElementType::bfloat16:
      return make_half({15, 7, 8, 0, 7}, 127);
    case ElementType::float32:
      return copy(H5T_IEEE_F32LE);
    case ElementType::float64:
      return copy(H5T_IEEE_F64LE);
    case ElementType::uint8:
      return copy(H5T_STD_U8LE);
    case ElementType::uint16:
      return copy(H5T_STD_U16LE);
    case ElementType::uint32:
      return copy(H5T_STD_U32LE);
    case ElementType::uint64:
      return copy(H5T_STD_U64LE);
    case ElementType::int8:
      return copy(H5T_STD_I8LE);
    case ElementType::int16:
      return copy(H5T_STD_I16LE);
    case ElementType::int32:
      return copy(H5T_STD_I32LE);
    case ElementType::int64:
      return copy(H5T_STD_I64LE);
    default:
      throw IoError(fmt::format("datasets of type {} cannot be created", name_of(type)));
  }
}

Hdf5Id make_text_type() {
  Hdf5Id type(call<IoError>("HDF5", "copy a type", H5Tcopy, H5T_C_S1), H5Tclose);
  call<IoError>("HDF5", "set the size of a type", H5Tset_size, type.get(), H5T_VARIABLE);
  call<IoError>("HDF5", "set the character set of a type", H5Tset_cset, type.get(), H5T_CSET_UTF8);
  return type;
}

ElementType classify(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return classify_float(type);
    case H5T_INTEGER:
      return classify_integer(type);
    case H5T_STRING:
      return H5Tis_variable_str(type) > 0 ? ElementType::text : ElementType::other;
    case H5T_OPAQUE:
      return ElementType::opaque;
    default:
      return ElementType::other;
  }
}

std::string describe(hid_t type) {
  const ElementType known = classify(type);
  const std::size_t size = H5Tget_size(type);
  const char* order = H5Tget_order(type) == H5T_ORDER_BE ? "big-endian" : "unusual";
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
    case H5T_INTEGER:
      return known != ElementType::other
                 ? std::string(name_of(known))
                 : fmt::format("{} {} of {} bytes", order,
                               H5Tget_class(type) == H5T_FLOAT ? "float" : "integer", size);
    case H5T_STRING:
      return "text";
    case H5T_OPAQUE:
      return fmt::format("opaque {}-byte elements", size);
    case H5T_ENUM:
      return "enum (h5py stores a bool so)";
    case H5T_COMPOUND:
      return "compound";
    case H5T_VLEN:
      return "variable-length array";
    case H5T_ARRAY:
      return "array";
    default:
      return "an unusual type";
  }
}

}  // namespace quoka::hdf5_detail
