#pragma once

#include <string>
#include <vector>

#include "quoka/results/table.hpp"
#include "quoka/sweep/config.hpp"

namespace quoka::apps {

/// What the user asked quoka-sweep to do.
enum class Verb {
  none,  ///< help or version was printed
  list_selectors,
  run,
  export_csv,
  print_config,
};

enum class Verbosity { quiet, normal, verbose };

/// The command line of quoka-sweep, as given.
struct SweepArguments {
  Verb verb = Verb::none;
  Verbosity verbosity = Verbosity::normal;

  // run
  std::string config_file;        ///< may be empty
  std::vector<Setting> settings;  ///< keys given as flags
  bool dry_run = false;
  bool overwrite = false;
  bool retry_failed = false;
  bool fail_fast = false;
  TableRows table_rows = TableRows::all;

  // export and config
  std::string results_file;
  std::string csv_file;              ///< empty: standard output
  std::vector<std::string> columns;  ///< empty: all
};

/// Reads the command line; prints help and version itself. Throws: ConfigError.
SweepArguments parse_arguments(int argc, const char* const* argv);

}  // namespace quoka::apps
