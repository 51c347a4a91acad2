// The only file of this program that includes CLI11.
#include "quoka_sweep/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <map>

#include "quoka/core/build_info.hpp"
#include "quoka/core/error.hpp"
#include "quoka/selection/parameters.hpp"

namespace quoka::apps {
namespace {

constexpr const char* input_group = "What to replay";
constexpr const char* axis_group =
    "Selector axes (each takes a list; [the paper's value] if left out)";
constexpr const char* constant_group = "Constants of the sweep";
constexpr const char* output_group = "Output";
constexpr const char* running_group = "How to run";

using FlagValues = std::map<std::string, std::vector<std::string>, std::less<>>;

const char* group_of(std::string_view key) {
  if (key == "capture" || key == "layer") {
    return input_group;
  }
  if (key == "grid" || find_parameter(key) != nullptr) {
    return axis_group;
  }
  if (key == "sink_size" || key == "min_history") {
    return constant_group;
  }
  return key == "threads" ? running_group : output_group;
}

bool is_list(std::string_view key) {
  return key == "capture" || key == "layer" || find_parameter(key) != nullptr;
}

bool is_switch(std::string_view key) { return key == "by_chunk" || key == "selections"; }

/// One flag for every key of the configuration file.
void add_key_flags(CLI::App& run, FlagValues& values) {
  for (const ConfigKey& key : config_keys()) {
    const std::string name(key.name);
    const std::string flag = "--" + name;
    const Parameter* parameter = find_parameter(name);
    const std::string default_text =
        parameter == nullptr ? "" : fmt::format(" [{}]", parameter->print(SelectorConfig()));
    const std::string help = std::string(key.help) + default_text;
    CLI::Option* option = nullptr;
    if (is_switch(name)) {
      option = run.add_flag(flag, values[name], help);
    } else {
      option = run.add_option(flag, values[name], help);
      option->type_name("VALUE");
      if (!is_list(name)) {
        option->expected(1);
      }
    }
    option->group(group_of(name));
  }
}

void add_run(CLI::App& app, SweepArguments& arguments, FlagValues& values, std::string& by) {
  CLI::App* run =
      app.add_subcommand("run", "replay a grid of configurations and write the results");
  run->add_option("CONFIG", arguments.config_file,
                  "configuration file (TOML); every key below is also a key of the file, and flags "
                  "win. Give it before flags that take lists");
  add_key_flags(*run, values);
  run->add_option("--by", by, "one table line per configuration and: capture or layer")
      ->check(CLI::IsMember({"capture", "layer"}))
      ->type_name("WHAT")
      ->group(output_group);
  run->add_flag("--overwrite", arguments.overwrite, "replace an output of another sweep")
      ->group(output_group);
  run->add_flag("--dry-run", arguments.dry_run, "print configurations, units, memory and time")
      ->group(running_group);
  run->add_flag("--retry-failed", arguments.retry_failed, "compute again what failed before")
      ->group(running_group);
  run->add_flag("--fail-fast", arguments.fail_fast, "stop at the first unit that fails")
      ->group(running_group);
  run->add_flag_callback(
         "--quiet", [&] { arguments.verbosity = Verbosity::quiet; },
         "print warnings and errors only, no table")
      ->group(running_group);
  run->add_flag_callback(
         "--verbose", [&] { arguments.verbosity = Verbosity::verbose; },
         "print more of what happens")
      ->group(running_group);
  run->callback([&arguments] { arguments.verb = Verb::run; });
}

void add_readers(CLI::App& app, SweepArguments& arguments) {
  CLI::App* to_csv = app.add_subcommand("export", "write a results file as a tidy CSV table");
  to_csv->add_option("RESULTS", arguments.results_file, "results file")->required();
  to_csv->add_option("--csv", arguments.csv_file, "file to write; standard output if left out")
      ->type_name("FILE");
  to_csv->add_option("--columns", arguments.columns, "metrics to write; all if left out")
      ->type_name("NAME");
  to_csv->callback([&arguments] { arguments.verb = Verb::export_csv; });

  CLI::App* config =
      app.add_subcommand("config", "print the configuration that made a results file");
  config->add_option("RESULTS", arguments.results_file, "results file")->required();
  config->callback([&arguments] { arguments.verb = Verb::print_config; });
}

std::string version_text() {
  const BuildInfo& build = build_info();
  return fmt::format("quoka-sweep {} (commit {}, {})", build.version, build.commit, build.compiler);
}

/// For a flag that does not exist: the nearest one that does.
std::string suggestion(const std::vector<std::string>& extras) {
  const bool is_flag = !extras.empty() && extras.front().starts_with("--");
  return is_flag ? fmt::format("; the nearest known flag is --{}",
                               nearest_key(extras.front().substr(2)))
                 : "";
}

/// In the order of the keys, which is the order of messages.
std::vector<Setting> flag_settings(const FlagValues& values) {
  std::vector<Setting> settings;
  for (const ConfigKey& key : config_keys()) {
    const auto found = values.find(key.name);
    if (found->second.empty()) {
      continue;
    }
    Setting setting{found->first, "--" + found->first, {}};
    for (const std::string& value : found->second) {
      setting.values.push_back({value, setting.origin, true});
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

}  // namespace

SweepArguments parse_arguments(int argc, const char* const* argv) {
  SweepArguments arguments;
  FlagValues values;
  std::string by;
  CLI::App app(
      "Replays captured attention layers as chunked prefill under a grid of key selectors, and "
      "says "
      "how far each configuration is from exact attention, where and why.",
      "quoka-sweep");
  app.footer(
      "Example: quoka-sweep run configs/quickstart.toml --budget 64 128 25%\n"
      "Exit codes: 0 done, 2 bad options or configuration, 3 bad input file, 4 some units "
      "failed,\n74 input or output error, 75 interrupted (the same command continues)");
  app.set_version_flag("--version", version_text());
  app.add_flag_callback(
      "--list-selectors", [&arguments] { arguments.verb = Verb::list_selectors; },
      "list the selectors and what they do");
  app.require_subcommand(0, 1);
  add_run(app, arguments, values, by);
  add_readers(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // prints help or version
      return arguments;
    }
    throw ConfigError(fmt::format("{}{}; see quoka-sweep --help and quoka-sweep run --help",
                                  error.what(), suggestion(app.remaining(true))));
  }
  require<ConfigError>(
      arguments.verb != Verb::none,
      "no verb is given; use one of run, export, config, or see quoka-sweep --help");
  arguments.settings = flag_settings(values);
  arguments.table_rows = by == "capture" ? TableRows::by_capture
                         : by == "layer" ? TableRows::by_layer
                                         : TableRows::all;
  return arguments;
}

}  // namespace quoka::apps
