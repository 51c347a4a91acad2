#pragma once

/// Errors of the whole library. A fault of the user or of a file throws a subclass of Error; a bug
/// of ours is an assertion in debug builds; a numerical fact (zero norm, no visible key) is a
/// result.

#include <fmt/format.h>

#include <cassert>
#include <stdexcept>
#include <string>
#include <utility>

#define QUOKA_ASSERT(condition) assert(condition)

namespace quoka {

/// Base of everything the library throws on purpose.
///
/// Message grammar: what is wrong, with both values and the name in the file or configuration; why
/// it matters in brackets; a suggestion. Lower case, no full stop.
class Error : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An option or a configuration file is wrong (exit code 2).
class ConfigError : public Error {
  using Error::Error;
};

/// The content of an input file is wrong (exit code 3).
class FormatError : public Error {
  using Error::Error;
};

/// Sizes disagree (exit code 3: sizes come from input files).
class ShapeError : public Error {
  using Error::Error;
};

/// The file system or HDF5 failed (exit code 74).
class IoError : public Error {
  using Error::Error;
};

/// The work was stopped on request; what is finished is kept (exit code 75).
class Interrupted : public Error {
  using Error::Error;
};

/// Throws ErrorType with the formatted message unless the condition holds. Always checked.
template <typename ErrorType, typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) {
    throw ErrorType(fmt::format(format, std::forward<Args>(args)...));
  }
}

}  // namespace quoka
