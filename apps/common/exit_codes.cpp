#include "common/exit_codes.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>

#include "common/printable.hpp"
#include "quoka/core/error.hpp"

namespace quoka::apps {

ExitCode report_exception(std::string_view program) {
  const auto report = [program](ExitCode code, std::string_view message) {
    fmt::print(stderr, "{}: {}\n", program, printable(message));
    return code;
  };
  try {
    throw;
  } catch (const ConfigError& error) {
    return report(exit_usage, error.what());
  } catch (const FormatError& error) {
    return report(exit_bad_input, error.what());
  } catch (const ShapeError& error) {
    return report(exit_bad_input, error.what());
  } catch (const IoError& error) {
    return report(exit_io, error.what());
  } catch (const Interrupted& error) {
    return report(exit_interrupted, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return report(exit_io, error.what());
  } catch (const std::bad_alloc&) {
    return report(exit_internal, "out of memory");
  } catch (const std::exception& error) {
    return report(exit_internal, fmt::format("internal error: {}", error.what()));
  }
}

}  // namespace quoka::apps
