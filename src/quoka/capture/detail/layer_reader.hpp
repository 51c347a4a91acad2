#pragma once

// Private to the capture room: from groups of the file to checked structs.

#include <map>
#include <string>
#include <vector>

#include "quoka/capture/reader.hpp"
#include "quoka/hdf5/group.hpp"

namespace quoka::capture_detail {

// One layer and its open tensors by name.
struct OpenLayer {
  CaptureLayer layer;
  std::map<std::string, Hdf5Dataset> datasets;
};

// Storage type of a tensor. Throws FormatError with the way to store it right.
StorageType storage_of(const Hdf5Dataset& tensor);

// Reads and checks everything of /layers/<name> except the tensors' values.
OpenLayer open_layer(const Hdf5Group& layers, const std::string& name, const CaptureLimits& limits);

}  // namespace quoka::capture_detail
