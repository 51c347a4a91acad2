#pragma once

// Private to the capture room: why a layer's stored output is not what its tensors give.

#include <string>

#include "quoka/capture/verify.hpp"

namespace quoka::capture_detail {

// Tries other attributes, other heads and other stages on a few rows of a layer that failed, and
// names the first that fits every head; else says what was tried. check.heads must be complete.
std::string diagnose_layer(const CaptureReader& reader, const CaptureLayer& layer,
                           const LayerCheck& check);

}  // namespace quoka::capture_detail
