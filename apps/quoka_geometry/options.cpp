// The only file of this program that includes CLI11.
#include "quoka_geometry/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "quoka/core/build_info.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/parallel.hpp"

namespace quoka::apps {
namespace {

constexpr const char* input_group = "What to measure";
constexpr const char* selection_group = "The selection whose queries and keys are marked";
constexpr const char* output_group = "Output";
constexpr const char* running_group = "How to run";

/// Options as they were written.
struct RawOptions {
  std::vector<std::string> layers{"all"};
  std::string chunk_size = "128";
  std::string n_sel_queries = "16";
  std::string budget = "1024";
  std::string sink_size = "4";
  std::string samples = "1024";
  std::string seed = "0";
  std::string threads;
};

template <typename Number>
Number parse_number(std::string_view flag, const std::string& text, Number least) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  require<ConfigError>(error == std::errc() && stop == end && value >= least,
                       "{} {} is not a whole number of {} or more", flag, text, least);
  return value;
}

void add_run(CLI::App& app, GeometryArguments& arguments, RawOptions& raw) {
  CLI::App* run = app.add_subcommand("run", "measure the layers of a capture");
  const auto add = [run](const char* flag, auto& value, const std::string& help,
                         const char* group) {
    return run->add_option(flag, value, help)->type_name("N")->group(group);
  };
  run->add_option("CAPTURE", arguments.capture, "capture")->required()->option_text("");
  add("--layer", raw.layers, "layers, or all [all]", input_group);
  add("--chunk_size", raw.chunk_size,
      "queries that share a mean query and a selection, or whole for the prompt [128]", input_group)
      ->type_name("N|whole");
  add("--sink_size", raw.sink_size, "leading positions that do not count as keys of interest [4]",
      input_group);
  add("--samples", raw.samples, "most queries, and keys, that are stored one by one [1024]",
      input_group);
  add("--seed", raw.seed, "of the samples [0]", input_group);
  add("--n_sel_queries", raw.n_sel_queries, "queries that a chunk keeps to score keys [16]",
      selection_group);
  add("--budget", raw.budget, "keys that a chunk keeps, or a percentage such as 25% [1024]",
      selection_group);
  run->add_option("--out", arguments.out, "file to write")
      ->required()
      ->type_name("FILE")
      ->group(output_group);
  run->add_flag("--overwrite", arguments.overwrite, "replace a geometry file")->group(output_group);
  add("--threads", raw.threads, "threads [all that this process may use]", running_group);
  run->add_flag("--quiet", arguments.quiet, "print warnings and errors only, no table")
      ->group(running_group);
  run->callback([&arguments] { arguments.run = true; });
}

void interpret(const RawOptions& raw, GeometryArguments& arguments) {
  StudySettings& settings = arguments.settings;
  settings.chunk_size =
      raw.chunk_size == "whole" ? 0 : parse_number<Index>("--chunk_size", raw.chunk_size, 1);
  settings.n_sel_queries = parse_number<Index>("--n_sel_queries", raw.n_sel_queries, 1);
  settings.sink_size = parse_number<Index>("--sink_size", raw.sink_size, 0);
  settings.n_samples = parse_number<Index>("--samples", raw.samples, 1);
  settings.seed = parse_number<std::uint64_t>("--seed", raw.seed, 0);
  settings.n_threads =
      raw.threads.empty() ? available_threads() : parse_number<int>("--threads", raw.threads, 1);
  try {
    settings.budget = Budget::parse(raw.budget);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("--budget: {}", error.what()));
  }
  for (const std::string& layer : raw.layers) {
    if (raw.layers.size() > 1 || layer != "all") {
      arguments.layers.push_back(parse_number<Index>("--layer", layer, 0));
    }
  }
}

}  // namespace

GeometryArguments parse_arguments(int argc, const char* const* argv) {
  GeometryArguments arguments;
  RawOptions raw;
  CLI::App app(
      "Measures the queries and keys of captured attention layers: similarity to the mean query "
      "against attention, principal components, tails of scores, and the paper's theorem.",
      "quoka-geometry");
  app.footer(
      "Example: quoka-geometry run data/smollm2-135m_needles_2k.h5 --budget 256 --out "
      "results/geometry.h5\n"
      "Exit codes: 0 done, 2 bad options, 3 bad input file, 4 some layers failed,\n"
      "74 input or output error, 75 interrupted (nothing is written)");
  const BuildInfo& build = build_info();
  app.set_version_flag("--version", fmt::format("quoka-geometry {} (commit {}, {})", build.version,
                                                build.commit, build.compiler));
  app.require_subcommand(0, 1);
  add_run(app, arguments, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // prints help or version
      return arguments;
    }
    throw ConfigError(
        fmt::format("{}; see quoka-geometry --help and quoka-geometry run --help", error.what()));
  }
  require<ConfigError>(arguments.run, "no verb is given; use run, or see quoka-geometry --help");
  interpret(raw, arguments);
  return arguments;
}

}  // namespace quoka::apps
