// quoka-check: makes profiles of results, and compares results with them.

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "common/exit_codes.hpp"
#include "common/printable.hpp"
#include "common/program.hpp"
#include "quoka/check/compare.hpp"
#include "quoka/check/profile_json.hpp"
#include "quoka/check/report.hpp"
#include "quoka/core/atomic_file.hpp"
#include "quoka/core/error.hpp"
#include "quoka/results/reader.hpp"
#include "quoka_check/options.hpp"

namespace {

using namespace quoka;
using namespace quoka::apps;

/// Prints what may hold texts of a file.
void print_text(const std::string& text) { print_out(printable(text)); }

/// Before any work: an output that would replace an input or another output.
void check_outputs(const std::vector<std::string>& inputs, std::vector<std::string> outputs) {
  std::erase(outputs, "");
  std::vector<std::filesystem::path> taken;
  for (const std::string& input : inputs) {
    taken.push_back(std::filesystem::weakly_canonical(input));
  }
  for (const std::string& output : outputs) {
    const auto path = std::filesystem::weakly_canonical(output);
    require<ConfigError>(std::ranges::find(taken, path) == taken.end(),
                         "{} is named twice (it would be replaced); write to another file", output);
    taken.push_back(path);
  }
}

/// Makes the folder too.
void write_output(const std::filesystem::path& path, const std::string& text) {
  if (path.has_parent_path()) {
    std::filesystem::create_directories(path.parent_path());
  }
  write_file_atomically(path, text);
}

void make_profile_file(const CheckArguments& arguments) {
  check_outputs({arguments.results_file}, {arguments.out_file});
  const Profile profile = make_profile(read_results(arguments.results_file), arguments.profile);
  write_output(arguments.out_file, profile_json(profile));
  print_text(fmt::format("wrote {}: {} rows of {} configurations\n", arguments.out_file,
                         profile.rows.size(), profile.configs.size()));
}

ExitCode check(const CheckArguments& arguments) {
  check_outputs({arguments.results_file, arguments.profile_file},
                {arguments.junit_file, arguments.markdown_file});
  const Profile profile = read_profile(arguments.profile_file);
  const Comparison comparison = compare(profile, read_results(arguments.results_file));
  if (!arguments.junit_file.empty()) {
    write_output(arguments.junit_file, report_junit(comparison));
  }
  if (!arguments.markdown_file.empty()) {
    write_output(arguments.markdown_file, printable(report_markdown(comparison)));
  }
  print_text(report_text(comparison));
  return comparison.n_failures() == 0 ? exit_done : exit_failed;
}

ExitCode run_program(int argc, const char* const* argv) {
  const CheckArguments arguments = parse_arguments(argc, argv);
  signal(SIGXFSZ, SIG_IGN);  // a file size limit is then an error of write, like a full disk
  switch (arguments.verb) {
    case CheckVerb::none:
      break;
    case CheckVerb::profile:
      make_profile_file(arguments);
      break;
    case CheckVerb::check:
      return check(arguments);
  }
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (...) {
    return quoka::apps::report_exception("quoka-check");
  }
}
