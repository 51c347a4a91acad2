#pragma once

#include <string>

#include "quoka/capture/reader.hpp"

namespace quoka {

/// What is in the capture, for people: origin, tokens, annotations, one line per layer, and
/// whether it was verified. Reads no tensor.
std::string inspect_text(const CaptureReader& reader);

/// The same and every attribute of each layer, as one JSON object.
std::string inspect_json(const CaptureReader& reader);

}  // namespace quoka
