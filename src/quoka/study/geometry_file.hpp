#pragma once

#include <string>

#include "quoka/results/results.hpp"
#include "quoka/study/settings.hpp"
#include "quoka/study/table.hpp"

namespace quoka {

/// Changes when docs/geometry.md changes in a way that a reader must know.
constexpr Index geometry_format_version = 1;

/// A whole geometry file: one capture, some of its layers.
struct GeometryFile {
  ResultsCapture capture;
  std::vector<ResultsLayer> layers;  ///< in the order of the table's dimension layer
  StudySettings settings;
  GeometryTable table;
  Provenance provenance;
};

/// The settings as lines "name = value".
std::string settings_text(const StudySettings& settings);

/// The bytes of a geometry file, built in memory (docs/geometry.md): netCDF-4 rules, one float64
/// variable per statistic, float32 per sample. Equal studies give equal datasets outside
/// /provenance. Throws: IoError.
std::string geometry_image(const GeometryFile& file);

}  // namespace quoka
