#pragma once

#include <string>

#include "quoka/study/geometry_file.hpp"

namespace quoka::apps {

/// A table with one line per layer: means over its query heads, and the theorem's count.
std::string summary_table(const GeometryFile& file);

}  // namespace quoka::apps
