#pragma once

#include <span>
#include <vector>

#include "quoka/capture/reader.hpp"
#include "quoka/replay/replay.hpp"

namespace quoka {

/// The questions of a capture with the needles that answer them: annotations of one group. A group
/// without a question or without a needle is left out. In the order of the group numbers.
std::vector<NeedleGroup> needle_groups(std::span<const Annotation> annotations);

/// One layer as the replay wants it. Tensors are read on demand, one KV head at a time, and checked
/// for NaN and infinity. The reader must outlive the result.
LayerInput layer_input(const CaptureReader& reader, Index layer_idx);

}  // namespace quoka
