#pragma once

#include <string>

#include "quoka/check/profile.hpp"

namespace quoka::apps {

/// What the user asked quoka-check to do.
enum class CheckVerb {
  none,  ///< help or version was printed
  profile,
  check,
};

/// The command line of quoka-check, as given.
struct CheckArguments {
  CheckVerb verb = CheckVerb::none;
  std::string results_file;

  // profile
  ProfileOptions profile;
  std::string out_file;

  // check
  std::string profile_file;
  std::string junit_file;     ///< empty: not written
  std::string markdown_file;  ///< empty: not written
};

/// Reads the command line; prints help and version itself. Throws: ConfigError.
CheckArguments parse_arguments(int argc, const char* const* argv);

}  // namespace quoka::apps
