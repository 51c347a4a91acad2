#pragma once

#include <string>

#include "quoka/capture/cut.hpp"

namespace quoka::apps {

/// What the user asked quoka-capture to do.
enum class CaptureVerb {
  none,  ///< help or version was printed
  inspect,
  verify,
  import,
  cut,
  checksum,
  probe,  ///< hidden: the first open of a file, in a child process
};

/// The command line of quoka-capture, as given.
struct CaptureArguments {
  CaptureVerb verb = CaptureVerb::none;
  std::string input;
  std::string output;  ///< import and cut
  CaptureLimits limits;
  bool trusted = false;       ///< no child process for the first open
  bool json = false;          ///< inspect and verify
  bool record = true;         ///< verify: write the note beside the capture
  bool read_tensors = false;  ///< probe: read everything, not only the structure
  int timeout_seconds = 0;    ///< for the child; 0: by the size of the file
  int n_threads = 1;
  CutOptions cut;
};

/// Reads the command line; prints help and version itself. Throws: ConfigError.
CaptureArguments parse_arguments(int argc, const char* const* argv);

}  // namespace quoka::apps
