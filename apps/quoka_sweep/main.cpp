// quoka-sweep: a grid of selector configurations over captures, to one results file and a table.

#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>

#include "common/exit_codes.hpp"
#include "common/program.hpp"
#include "quoka/core/atomic_file.hpp"
#include "quoka/core/error.hpp"
#include "quoka/results/export.hpp"
#include "quoka/results/reader.hpp"
#include "quoka/selection/parameters.hpp"
#include "quoka/sweep/sweep.hpp"
#include "quoka_sweep/options.hpp"

namespace {

using namespace quoka;
using namespace quoka::apps;

void start_logging(Verbosity verbosity) {
  const auto logger = spdlog::stderr_color_mt("quoka-sweep");
  logger->set_pattern("%^%l%$: %v");
  logger->set_level(verbosity == Verbosity::quiet     ? spdlog::level::warn
                    : verbosity == Verbosity::verbose ? spdlog::level::debug
                                                      : spdlog::level::info);
  spdlog::set_default_logger(logger);
}

/// Words with anything but plain characters in single quotes, as a shell wants them.
SweepConfig sweep_config(const SweepArguments& arguments) {
  std::vector<Setting> settings;
  if (!arguments.config_file.empty()) {
    settings = read_settings(arguments.config_file);
  }
  settings.insert(settings.end(), arguments.settings.begin(), arguments.settings.end());
  return make_sweep_config(settings);
}

ProgressStyle progress_style(Verbosity verbosity) {
  if (verbosity == Verbosity::quiet) {
    return ProgressStyle::none;
  }
  return isatty(STDERR_FILENO) == 1 ? ProgressStyle::line : ProgressStyle::log;
}

ExitCode report_outcome(const SweepConfig& config, const SweepArguments& arguments,
                        const SweepOutcome& outcome) {
  if (outcome.was_complete) {
    spdlog::info("{} is complete already: nothing to do", config.out);
  } else if (outcome.results) {
    spdlog::info("wrote {}", config.out);
  }
  if (outcome.results && arguments.verbosity != Verbosity::quiet) {
    print_out(results_table(*outcome.results, arguments.table_rows));
  }
  for (const FailedUnit& unit : outcome.failed) {
    spdlog::error("no results for {} layer {}: {}", unit.capture, unit.layer_idx, unit.reason);
  }
  if (outcome.failed.empty()) {
    return exit_done;
  }
  spdlog::error("{} units failed; once the cause is gone, add --retry-failed to the command",
                outcome.failed.size());
  return exit_failed;
}

ExitCode run(const SweepArguments& arguments, std::string line) {
  const SweepConfig config = sweep_config(arguments);
  SweepOptions options;
  options.runner.n_threads = thread_count(config);
  options.runner.fail_fast = arguments.fail_fast;
  options.runner.progress = progress_style(arguments.verbosity);
  options.runner.stop = &stop_requested;
  options.overwrite = arguments.overwrite;
  options.retry_failed = arguments.retry_failed;
  options.command_line = std::move(line);
  if (arguments.dry_run) {
    print_out(dry_run(config, options));
    return exit_done;
  }
  return report_outcome(config, arguments, run_sweep(config, options));
}

void export_csv(const SweepArguments& arguments) {
  std::ostringstream csv;
  write_csv(read_results(arguments.results_file), arguments.columns, csv);
  if (arguments.csv_file.empty()) {
    print_out(csv.str());
  } else {
    write_file_atomically(arguments.csv_file, csv.str());
  }
}

void list_selectors() {
  std::string text;
  for (const auto& [name, description] : selector_descriptions()) {
    text += fmt::format("{:<12} {}\n", name, description);
  }
  print_out(text);
}

ExitCode run_program(int argc, const char* const* argv) {
  const SweepArguments arguments = parse_arguments(argc, argv);
  start_logging(arguments.verbosity);
  handle_stop_signals();
  switch (arguments.verb) {
    case Verb::none:
      break;
    case Verb::list_selectors:
      list_selectors();
      break;
    case Verb::run:
      return run(arguments, command_line(argc, argv));
    case Verb::export_csv:
      export_csv(arguments);
      break;
    case Verb::print_config:
      print_out(read_results(arguments.results_file).provenance.config_text);
      break;
  }
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (...) {
    return quoka::apps::report_exception("quoka-sweep");
  }
}
