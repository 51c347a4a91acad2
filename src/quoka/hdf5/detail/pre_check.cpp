#include "quoka/hdf5/detail/pre_check.hpp"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace quoka::hdf5_detail {
namespace {

constexpr int max_rank = 8;
constexpr int max_filters = 3;
constexpr Index max_chunk_bytes = Index{64} << 20;

void check_filters(const std::string& where, hid_t properties) {
  const int n_filters = call<FormatError>(where, "count its filters", H5Pget_nfilters, properties);
  require<FormatError>(
      n_filters <= max_filters,
      "{} has {} filters, more than {}; store it with at most shuffle, deflate and "
      "fletcher32",
      where, n_filters, max_filters);
  for (int i = 0; i < n_filters; ++i) {
    unsigned flags = 0;
    std::size_t n_values = 0;
    const H5Z_filter_t filter = call<FormatError>(
        where, "read its filters", H5Pget_filter2, properties, static_cast<unsigned>(i), &flags,
        &n_values, nullptr, std::size_t{0}, nullptr, nullptr);
    require<FormatError>(
        filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_DEFLATE ||
            filter == H5Z_FILTER_FLETCHER32,
        "{} uses the HDF5 filter {} (it may need a plug-in); store it with shuffle, "
        "deflate and fletcher32 only, for example with h5repack",
        where, filter);
  }
}

std::vector<Index> read_shape(const std::string& where, hid_t space, const DatasetLimits& limits) {
  require<FormatError>(H5Sget_simple_extent_type(space) != H5S_NULL, "{} has no elements", where);
  const int rank = call<FormatError>(where, "get its rank", H5Sget_simple_extent_ndims, space);
  require<FormatError>(rank <= max_rank, "{} has {} axes, more than {}", where, rank, max_rank);
  std::array<hsize_t, H5S_MAX_RANK> extents{};
  call<FormatError>(where, "get its shape", H5Sget_simple_extent_dims, space, extents.data(),
                    nullptr);
  std::vector<Index> shape;
  for (int axis = 0; axis < rank; ++axis) {
    const hsize_t extent = extents[static_cast<std::size_t>(axis)];
    require<FormatError>(extent <= static_cast<hsize_t>(limits.max_dim),
                         "{} declares an extent of {} on axis {}, more than {}", where, extent,
                         axis, limits.max_dim);
    require<FormatError>(extent > 0 || limits.allow_empty, "{} has no elements on axis {}", where,
                         axis);
    shape.push_back(static_cast<Index>(extent));
  }
  return shape;
}

// 128 bits: shapes of a hostile file overflow 64.
__extension__ using Wide = __int128;

Wide wide_product(const std::vector<Index>& shape, std::size_t element_size) {
  Wide n = static_cast<Wide>(element_size);
  for (const Index extent : shape) {
    n *= extent;
    if (n > (Wide{1} << 100)) {
      return n;  // far above every limit
    }
  }
  return n;
}

std::vector<Index> read_layout(const std::string& where, hid_t properties, std::size_t rank,
                               std::size_t element_size) {
  const H5D_layout_t layout = call<FormatError>(where, "get its layout", H5Pget_layout, properties);
  require<FormatError>(
      layout == H5D_CONTIGUOUS || layout == H5D_COMPACT || layout == H5D_CHUNKED,
      "{} is a virtual dataset (its data are in other files); store the data itself", where);
  const int n_external =
      call<FormatError>(where, "count its external files", H5Pget_external_count, properties);
  require<FormatError>(n_external == 0,
                       "{} keeps its data in {} external files (any file of this computer could be "
                       "read that way); store the data itself",
                       where, n_external);
  std::vector<Index> chunk;
  if (layout == H5D_CHUNKED) {
    std::array<hsize_t, H5S_MAX_RANK> extents{};
    const int chunk_rank = call<FormatError>(where, "get its chunk shape", H5Pget_chunk, properties,
                                             H5S_MAX_RANK, extents.data());
    require<FormatError>(std::cmp_equal(chunk_rank, rank), "{} has chunks of another rank", where);
    chunk.assign(extents.begin(), extents.begin() + chunk_rank);
    const Wide bytes = wide_product(chunk, element_size);
    require<FormatError>(bytes <= max_chunk_bytes,
                         "{} has chunks of {} elements, more than {} bytes (one is unpacked as a "
                         "whole); use smaller chunks, for example (1, 1024, head_dim)",
                         where, shape_text(chunk), max_chunk_bytes);
  }
  return chunk;
}

// Chunks that were never written read as zeros without any error, so count them.
void check_all_chunks_exist(const std::string& where, hid_t dataset, hid_t space,
                            const DatasetInfo& info) {
  hsize_t found = 0;
  call<FormatError>(where, "count its chunks", H5Dget_num_chunks, dataset, space, &found);
  Index expected = 1;
  for (std::size_t axis = 0; axis < info.shape.size(); ++axis) {
    expected *= (info.shape[axis] + info.chunk[axis] - 1) / info.chunk[axis];
  }
  require<FormatError>(std::cmp_equal(found, expected),
                       "{} has {} of its {} chunks (its writer stopped early); write it again",
                       where, found, expected);
}

void check_size(const std::string& where, hid_t dataset, Wide bytes, const DatasetLimits& limits) {
  require<FormatError>(bytes <= limits.max_bytes, "{} declares about {:.3g} bytes, more than {}",
                       where, static_cast<double>(bytes), limits.max_bytes);
  const auto stored = static_cast<Wide>(H5Dget_storage_size(dataset));
  const Hdf5Id file(call<FormatError>(where, "get its file", H5Iget_file_id, dataset), H5Fclose);
  hsize_t file_size = 0;
  call<FormatError>(where, "get the size of its file", H5Fget_filesize, file.get(), &file_size);
  require<FormatError>(
      stored <= static_cast<Wide>(file_size),
      "{} claims {} stored bytes, more than the {} of the file; the file is damaged", where,
      static_cast<std::uint64_t>(stored), file_size);
  if (limits.allow_empty) {
    return;
  }
  require<FormatError>(stored > 0, "{} was declared and never written; write it again", where);
  require<FormatError>(
      static_cast<double>(bytes) <= limits.max_ratio * static_cast<double>(stored),
      "{} unpacks to {} bytes from {}, more than {:g} times (a filter bomb); store "
      "it without compression",
      where, static_cast<std::uint64_t>(bytes), static_cast<std::uint64_t>(stored),
      limits.max_ratio);
}

}  // namespace

DatasetInfo pre_check(const std::string& where, hid_t dataset, const DatasetLimits& limits) {
  const Hdf5Id type(call<FormatError>(where, "get its type", H5Dget_type, dataset), H5Tclose);
  const Hdf5Id space = dataspace_of<FormatError>(where, dataset);
  const Hdf5Id properties(
      call<FormatError>(where, "get its properties", H5Dget_create_plist, dataset), H5Pclose);
  const std::size_t element_size = H5Tget_size(type.get());

  DatasetInfo info;
  info.type = hdf5_detail::classify(type.get());
  info.shape = read_shape(where, space.get(), limits);
  info.chunk = read_layout(where, properties.get(), info.shape.size(), element_size);
  info.opaque_size = info.type == ElementType::opaque ? static_cast<Index>(element_size) : 0;
  check_filters(where, properties.get());
  check_size(where, dataset, wide_product(info.shape, element_size), limits);
  if (!info.chunk.empty() && !limits.allow_empty) {
    check_all_chunks_exist(where, dataset, space.get(), info);
  }
  return info;
}

}  // namespace quoka::hdf5_detail
