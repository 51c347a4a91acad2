#include "quoka/hdf5/file.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string_view>
#include <utility>

#include "quoka/hdf5/detail/api.hpp"

namespace quoka {
namespace {

using hdf5_detail::call;

// HDF5 allows a user block before its signature: 0, or a power of two from 512.
bool has_signature(std::ifstream& file) {
  constexpr std::string_view signature("\x89HDF\r\n\x1a\n", 8);
  std::string start(signature.size(), '\0');
  for (std::streamoff offset = 0;; offset = offset == 0 ? 512 : 2 * offset) {
    file.seekg(offset);
    if (!file.read(start.data(), static_cast<std::streamsize>(start.size()))) {
      return false;
    }
    if (start == signature) {
      return true;
    }
  }
}

void check_readable_hdf5(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  require<FormatError>(std::filesystem::exists(status), "{} does not exist; check the path", name);
  require<FormatError>(std::filesystem::is_regular_file(status),
                       "{} is not a regular file; give the path of an HDF5 file", name);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  require<IoError>(file.good(), "{} cannot be read ({}); check its permissions", name,
                   std::strerror(errno));
  require<FormatError>(has_signature(file),
                       "{} is not an HDF5 file (its signature is missing); check the path", name);
}

Hdf5Id access_list(const std::string& name) {
  hdf5_detail::prepare_thread();
  Hdf5Id list(call<IoError>(name, "create a property list", H5Pcreate, H5P_FILE_ACCESS), H5Pclose);
  call<IoError>(name, "set the close degree", H5Pset_fclose_degree, list.get(), H5F_CLOSE_STRONG);
  call<IoError>(name, "set the format versions", H5Pset_libver_bounds, list.get(), H5F_LIBVER_V18,
                H5F_LIBVER_V18);
  return list;
}

Hdf5Id create(const std::string& name, const Hdf5Id& access) {
  const Hdf5Id creation(call<IoError>(name, "create a property list", H5Pcreate, H5P_FILE_CREATE),
                        H5Pclose);
  const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;  // netCDF tools need it
  call<IoError>(name, "track creation order", H5Pset_link_creation_order, creation.get(), order);
  // Without times of objects the same content gives the same bytes.
  call<IoError>(name, "leave out times", H5Pset_obj_track_times, creation.get(), false);
  call<IoError>(name, "track creation order", H5Pset_attr_creation_order, creation.get(), order);
  return {call<IoError>(name, "create it; check that its directory exists and may be written",
                        H5Fcreate, name.c_str(), static_cast<unsigned>(H5F_ACC_TRUNC),
                        creation.get(), access.get()),
          H5Fclose};
}

// What HDF5 calls for the memory of a file in memory. They exist for keep_and_free: it takes the
// bytes over when the file is closed. (H5Fget_file_image, meant for this, gives a superblock with a
// wrong checksum in 1.10.8: it clears the flag "open for writing" and keeps the checksum.)
void* allocate(std::size_t size, H5FD_file_image_op_t /*op*/, void* /*image*/) {
  return std::malloc(size);
}

void* copy(void* to, const void* from, std::size_t size, H5FD_file_image_op_t /*op*/,
           void* /*image*/) {
  return std::memcpy(to, from, size);
}

void* reallocate(void* memory, std::size_t size, H5FD_file_image_op_t /*op*/, void* /*image*/) {
  return std::realloc(memory, size);
}

herr_t keep_and_free(void* memory, H5FD_file_image_op_t op, void* image) {
  if (op == H5FD_FILE_IMAGE_OP_FILE_CLOSE && memory != nullptr) {
    // The memory is larger than the file, whose end is in its superblock (version 2, byte 28).
    std::uint64_t size = 0;
    std::memcpy(&size, static_cast<const char*>(memory) + 28, sizeof(size));
    try {
      static_cast<std::string*>(image)->assign(static_cast<const char*>(memory), size);
    } catch (const std::bad_alloc&) {
      return -1;  // no exception may pass through C code
    }
  }
  std::free(memory);
  return 0;
}

void* same_data(void* image) { return image; }

herr_t no_free(void* /*image*/) { return 0; }

}  // namespace

Hdf5File Hdf5File::open_read_only(const std::filesystem::path& path) {
  check_readable_hdf5(path);
  const std::string name = path.string();
  const Hdf5Id access = access_list(name);
  call<IoError>(name, "switch file locking off", H5Pset_file_locking, access.get(), hbool_t{false},
                hbool_t{true});
  return {{call<FormatError>(name, "open it; it is truncated or damaged, copy or make it again",
                             H5Fopen, name.c_str(), static_cast<unsigned>(H5F_ACC_RDONLY),
                             access.get()),
           H5Fclose},
          name};
}

Hdf5File Hdf5File::create_in_memory() {
  const std::string name = "file in memory";
  const Hdf5Id access = access_list(name);
  constexpr std::size_t growth = std::size_t{1} << 20;  // bytes per enlargement
  call<IoError>(name, "select memory as storage", H5Pset_fapl_core, access.get(), growth,
                hbool_t{false});
  auto image = std::make_unique<std::string>();
  H5FD_file_image_callbacks_t callbacks{&allocate,  &copy,    &reallocate, &keep_and_free,
                                        &same_data, &no_free, image.get()};
  call<IoError>(name, "set how memory is handed over", H5Pset_file_image_callbacks, access.get(),
                &callbacks);
  Hdf5File file(create(name, access), name);
  file.image_ = std::move(image);
  return file;
}

Hdf5File Hdf5File::create_on_disk(const std::filesystem::path& path) {
  const std::string name = path.string();
  const Hdf5Id access = access_list(name);
  return {create(name, access), name};
}

Hdf5Group Hdf5File::root() const {
  return {{call<FormatError>(name_, "open its root group", H5Gopen2, id_.get(), "/", H5P_DEFAULT),
           H5Gclose},
          name_ + ": /"};
}

std::string Hdf5File::image() {
  require<IoError>(image_ != nullptr, "{}: only files in memory have an image", name_);
  close();
  return std::move(*image_);
}

void Hdf5File::close() {
  constexpr const char* what = "finish the file; is there space left on the disk?";
  call<IoError>(name_, what, H5Fflush, id_.get(), H5F_SCOPE_LOCAL);
  // Released first: whatever happens, the file is not closed twice.
  call<IoError>(name_, what, H5Fclose, id_.release());
}

}  // namespace quoka
