#include "quoka/hdf5/group.hpp"

#include <utility>

#include "quoka/hdf5/detail/api.hpp"
#include "quoka/hdf5/detail/pre_check.hpp"

namespace quoka {
namespace {

using hdf5_detail::call;

std::string child_place(const Hdf5Group& group, const std::string& name) {
  const bool at_root = group.where().ends_with('/');
  return group.where() + (at_root ? "" : "/") + name;
}

// Opens a child through a hard link.
Hdf5Id open_child(const Hdf5Group& group, const std::string& name, H5I_type_t wanted) {
  const std::string where = child_place(group, name);
  const char* kind = wanted == H5I_GROUP ? "group" : "dataset";
  require<FormatError>(group.contains(name), "{} is missing (a {} is needed there); write it",
                       where, kind);
  H5L_info_t link;
  call<FormatError>(where, "read the link", H5Lget_info, group.id(), name.c_str(), &link,
                    H5P_DEFAULT);
  require<FormatError>(link.type == H5L_TYPE_HARD,
                       "{} is a soft or external link (links can lead to other files and are not "
                       "followed); store the {} itself",
                       where, kind);
  Hdf5Id id(call<FormatError>(where, "open it", H5Oopen, group.id(), name.c_str(), H5P_DEFAULT),
            H5Oclose);
  require<FormatError>(H5Iget_type(id.get()) == wanted, "{} is not a {}; store a {} there", where,
                       kind, kind);
  return id;
}

Hdf5Id make_space(const std::string& where, const std::vector<Index>& shape) {
  if (shape.empty()) {
    return {call<IoError>(where, "create a dataspace", H5Screate, H5S_SCALAR), H5Sclose};
  }
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  return {call<IoError>(where, "create a dataspace", H5Screate_simple,
                        static_cast<int>(extents.size()), extents.data(), nullptr),
          H5Sclose};
}

Hdf5Id make_creation_list(const std::string& where, const DatasetOptions& options) {
  Hdf5Id list(call<IoError>(where, "create a property list", H5Pcreate, H5P_DATASET_CREATE),
              H5Pclose);
  call<IoError>(where, "leave out times", H5Pset_obj_track_times, list.get(), false);
  call<IoError>(where, "track creation order", H5Pset_attr_creation_order, list.get(),
                static_cast<unsigned>(H5P_CRT_ORDER_TRACKED));
  if (!options.chunk.empty()) {
    const std::vector<hsize_t> chunk(options.chunk.begin(), options.chunk.end());
    call<IoError>(where, "set the chunk shape", H5Pset_chunk, list.get(),
                  static_cast<int>(chunk.size()), chunk.data());
  }
  if (options.deflate > 0) {
    call<IoError>(where, "set the shuffle filter", H5Pset_shuffle, list.get());
    call<IoError>(where, "set the deflate filter", H5Pset_deflate, list.get(),
                  static_cast<unsigned>(options.deflate));
  }
  if (options.fletcher32) {
    call<IoError>(where, "set the fletcher32 filter", H5Pset_fletcher32, list.get());
  }
  if (options.fill) {
    call<IoError>(where, "set the fill value", H5Pset_fill_value, list.get(), H5T_NATIVE_DOUBLE,
                  &*options.fill);
  }
  return list;
}

// Creates the dataset; whole chunks go straight to the file (a chunk cache of 0 bytes), so that a
// full disk shows up in the write that meets it and not when the file is closed.
Hdf5Dataset create(const Hdf5Group& group, const std::string& name, const Hdf5Id& type,
                   DatasetInfo info, const DatasetOptions& options) {
  const std::string where = child_place(group, name);
  const Hdf5Id space = make_space(where, info.shape);
  const Hdf5Id creation = make_creation_list(where, options);
  const Hdf5Id access(call<IoError>(where, "create a property list", H5Pcreate, H5P_DATASET_ACCESS),
                      H5Pclose);
  call<IoError>(where, "set the chunk cache", H5Pset_chunk_cache, access.get(), std::size_t{0},
                std::size_t{0}, H5D_CHUNK_CACHE_W0_DEFAULT);
  Hdf5Id id(call<IoError>(where, "create it", H5Dcreate2, group.id(), name.c_str(), type.get(),
                          space.get(), H5P_DEFAULT, creation.get(), access.get()),
            H5Dclose);
  return {std::move(id), where, std::move(info)};
}

}  // namespace

bool Hdf5Group::contains(const std::string& name) const {
  return call<FormatError>(where(), "look for '" + name + "'", H5Lexists, id(), name.c_str(),
                           H5P_DEFAULT) > 0;
}

Hdf5Group Hdf5Group::group(const std::string& name) const {
  return {open_child(*this, name, H5I_GROUP), child_place(*this, name)};
}

Hdf5Dataset Hdf5Group::dataset(const std::string& name, const DatasetLimits& limits) const {
  const std::string where = child_place(*this, name);
  Hdf5Id id = open_child(*this, name, H5I_DATASET);
  DatasetInfo info = hdf5_detail::pre_check(where, id.get(), limits);
  return {std::move(id), where, std::move(info)};
}

std::vector<std::string> Hdf5Group::children(Index max_children) const {
  H5G_info_t info;
  call<FormatError>(where(), "list it", H5Gget_info, id(), &info);
  require<FormatError>(info.nlinks <= static_cast<hsize_t>(max_children),
                       "{} has {} members, more than {}", where(), info.nlinks, max_children);
  std::vector<std::string> names;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const auto name = [&](char* buffer, std::size_t size) {
      return call<FormatError>(where(), "list it", H5Lget_name_by_idx, id(), ".", H5_INDEX_NAME,
                               H5_ITER_INC, i, buffer, size, H5P_DEFAULT);
    };
    std::string text(static_cast<std::size_t>(name(nullptr, 0)) + 1, '\0');
    name(text.data(), text.size());
    text.pop_back();  // the terminator
    names.push_back(std::move(text));
  }
  return names;
}

Hdf5Group Hdf5Group::create_group(const std::string& name) const {
  const std::string where = child_place(*this, name);
  const Hdf5Id list(call<IoError>(where, "create a property list", H5Pcreate, H5P_GROUP_CREATE),
                    H5Pclose);
  const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
  call<IoError>(where, "track creation order", H5Pset_link_creation_order, list.get(), order);
  call<IoError>(where, "leave out times", H5Pset_obj_track_times, list.get(), false);
  call<IoError>(where, "track creation order", H5Pset_attr_creation_order, list.get(), order);
  return {{call<IoError>(where, "create it", H5Gcreate2, id(), name.c_str(), H5P_DEFAULT,
                         list.get(), H5P_DEFAULT),
           H5Gclose},
          where};
}

Hdf5Dataset Hdf5Group::create_dataset(const std::string& name, ElementType type,
                                      const std::vector<Index>& shape,
                                      const DatasetOptions& options) const {
  DatasetInfo info;
  info.type = type;
  info.shape = shape;
  info.chunk = options.chunk;
  return create(*this, name, hdf5_detail::make_type(type), std::move(info), options);
}

Hdf5Dataset Hdf5Group::create_texts(const std::string& name, const std::vector<Index>& shape,
                                    std::span<const std::string> texts) const {
  DatasetInfo info;
  info.type = ElementType::text;
  info.shape = shape;
  Hdf5Dataset dataset = create(*this, name, hdf5_detail::make_text_type(), std::move(info), {});
  dataset.write_texts(texts);
  return dataset;
}

}  // namespace quoka
