#pragma once

#include <string>

#include "quoka/check/compare.hpp"

namespace quoka {

/// For a terminal: notes, one line per metric, every row that is not equal (failures first), and
/// the verdict as the last line.
std::string report_text(const Comparison& comparison);

/// The same in Markdown, for a comment or a job summary.
std::string report_markdown(const Comparison& comparison);

/// JUnit XML: one test case per row of the profile, with the layer group as its class; the notes
/// are properties.
std::string report_junit(const Comparison& comparison);

}  // namespace quoka
