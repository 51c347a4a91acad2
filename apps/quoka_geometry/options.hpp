#pragma once

#include <string>
#include <vector>

#include "quoka/study/settings.hpp"

namespace quoka::apps {

/// The command line of quoka-geometry, as given.
struct GeometryArguments {
  bool run = false;  ///< false: help or version was printed
  std::string capture;
  std::string out;
  std::vector<Index> layers;  ///< empty: all
  StudySettings settings;
  bool overwrite = false;
  bool quiet = false;
};

/// Reads the command line; prints help and version itself. Throws: ConfigError.
GeometryArguments parse_arguments(int argc, const char* const* argv);

}  // namespace quoka::apps
