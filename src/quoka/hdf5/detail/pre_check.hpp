#pragma once

#include <string>

#include "quoka/hdf5/detail/api.hpp"

namespace quoka::hdf5_detail {

// Checks an open dataset without reading any of its data; see Hdf5Group::dataset.
DatasetInfo pre_check(const std::string& where, hid_t dataset, const DatasetLimits& limits);

}  // namespace quoka::hdf5_detail
