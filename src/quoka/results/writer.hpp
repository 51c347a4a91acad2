#pragma once

#include <string>

#include "quoka/results/results.hpp"

namespace quoka {

/// The bytes of a results file, built in memory (docs/results-format.md). Everything outside
/// /provenance depends on the results alone, so equal results give equal datasets.
///
/// sink_mass, which has no configuration, is taken from the computed configuration with the
/// smallest label. Throws: IoError.
std::string results_image(const Results& results);

}  // namespace quoka
