#pragma once

#include <string_view>

namespace quoka::apps {

/// What every program ends with.
enum ExitCode : int {
  exit_done = 0,
  exit_internal = 1,      ///< a bug of ours, or out of memory
  exit_usage = 2,         ///< bad options or configuration
  exit_bad_input = 3,     ///< bad input file
  exit_failed = 4,        ///< it ran, and some units failed or a check found a difference
  exit_io = 74,           ///< input or output error, disk full included
  exit_interrupted = 75,  ///< the same command continues
};

/// To be called in a catch block of main: prints "PROGRAM: MESSAGE" on stderr and returns the exit
/// code of the exception that is being handled.
ExitCode report_exception(std::string_view program);

}  // namespace quoka::apps
