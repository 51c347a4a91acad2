#pragma once

// Private to the capture room: what a capture says about itself as a whole.

#include <vector>

#include "quoka/capture/schema.hpp"
#include "quoka/hdf5/group.hpp"

namespace quoka::capture_detail {

// Reads the root attributes after checking format, version and stage.
CaptureInfo read_info(const Hdf5Group& root);

// Reads /tokens and compares it with token_ids_sha256.
CaptureTokens read_tokens(const Hdf5Group& root, const CaptureInfo& info);

// Reads /annotations (none if it is absent); n_keys bounds the positions.
std::vector<Annotation> read_annotations(const Hdf5Group& root, Index n_keys);

// SHA-256 of the ids as little-endian int32.
std::string token_hash(const std::vector<std::int32_t>& ids);

}  // namespace quoka::capture_detail
