// The only file of this program that includes CLI11.
#include "quoka_bench/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "quoka/core/build_info.hpp"
#include "quoka/core/error.hpp"

namespace quoka::apps {
namespace {

constexpr const char* layer_group = "Layer (synthetic, unless --capture is given)";
constexpr const char* work_group = "Work";
constexpr const char* measuring_group = "Measuring";
constexpr const char* output_group = "Output";

/// Whole numbers from `least` to 2^31; CLI11's own bounds print 300 digits.
CLI::Validator at_least(Index least) {
  constexpr Index largest = Index{1} << 31;
  return {[=](const std::string& text) {
            Index value = 0;
            const char* const end = text.data() + text.size();
            const auto [rest, error] = std::from_chars(text.data(), end, value);
            const bool is_good =
                error == std::errc() && rest == end && value >= least && value <= largest;
            return is_good ? std::string()
                           : fmt::format("{} is not a whole number from {} to {}", text, least,
                                         largest);
          },
          ""};
}

/// An option that takes a number, or a list of numbers.
template <typename Value>
CLI::Option* add_number(CLI::App& verb, const std::string& flag, Value& value, Index least,
                        const std::string& help) {
  return verb.add_option(flag, value, help)
      ->check(at_least(least))
      ->capture_default_str()
      ->type_name("N");
}

void add_sizes(CLI::App& verb, BenchOptions& options) {
  add_number(verb, "--q_heads", options.n_q_heads, 1, "query heads")->group(layer_group);
  add_number(verb, "--kv_heads", options.n_kv_heads, 1, "KV heads")->group(layer_group);
  add_number(verb, "--head_dim", options.head_dims, 1, "width of a head")->group(layer_group);
  add_number(verb, "--seed", options.seed, 0, "of the synthetic numbers")->group(layer_group);
}

void add_capture(CLI::App& verb, BenchOptions& options) {
  verb.add_option("--capture", options.capture, "measure on a layer of this capture")
      ->type_name("FILE")
      ->group(layer_group);
  add_number(verb, "--layer", options.layer_idx, 0, "layer of the capture [its first]")
      ->default_str("")
      ->group(layer_group);
}

void add_selection(CLI::App& verb, BenchOptions& options) {
  add_number(verb, "--chunk_size", options.chunk_size, 1, "rows of a chunk")->group(work_group);
  add_number(verb, "--budget", options.budget, 1, "history keys kept")->group(work_group);
  add_number(verb, "--n_sel_queries", options.n_sel_queries, 1, "rows that score the keys")
      ->group(work_group);
}

void add_measuring(CLI::App& verb, BenchOptions& options) {
  add_number(verb, "--repetitions", options.repetitions, 1, "measurements of everything")
      ->group(measuring_group);
  add_number(verb, "--warm_ups", options.warm_ups, 0, "rounds before the first measurement")
      ->group(measuring_group);
  add_number(verb, "--cpu", options.cpu, 0, "processor to run on [the first that is allowed]")
      ->default_str("")
      ->group(measuring_group);
}

void add_threads(CLI::App& verb, BenchOptions& options) {
  add_number(verb, "--threads", options.n_threads, 1, "threads of the replay")
      ->group(measuring_group);
}

void add_output(CLI::App& verb, BenchOptions& options) {
  verb.add_flag("--json", options.json, "print JSON instead of a table")->group(output_group);
  verb.add_option("--out", options.out, "also write the measurements to this HDF5 file")
      ->type_name("FILE")
      ->group(output_group);
}

CLI::App* add_verb(CLI::App& app, BenchOptions& options, BenchVerb verb, const std::string& name,
                   const std::string& help) {
  CLI::App* added = app.add_subcommand(name, help);
  added->callback([&options, verb] { options.verb = verb; });
  return added;
}

void add_attention(CLI::App& app, BenchOptions& options) {
  CLI::App* verb = add_verb(app, options, BenchVerb::attention, "attention",
                            "dense attention of a chunk against the rate of a matrix product");
  add_sizes(*verb, options);
  add_number(*verb, "--history", options.histories, 0, "keys before the chunk")->group(work_group);
  add_number(*verb, "--chunk_size", options.chunk_size, 1, "rows of a chunk")->group(work_group);
  add_measuring(*verb, options);
  add_output(*verb, options);
}

void add_prefill(CLI::App& app, BenchOptions& options) {
  CLI::App* verb = add_verb(app, options, BenchVerb::prefill, "prefill",
                            "sparse prefill of a chunk, stage by stage, against dense attention");
  add_capture(*verb, options);
  add_sizes(*verb, options);
  add_number(*verb, "--history", options.histories, 0, "keys before the chunk")->group(work_group);
  add_selection(*verb, options);
  add_measuring(*verb, options);
  add_output(*verb, options);
}

void add_sweep(CLI::App& app, BenchOptions& options) {
  CLI::App* verb = add_verb(app, options, BenchVerb::sweep, "sweep",
                            "the replay of a layer under 100 configurations, and where it goes");
  add_capture(*verb, options);
  add_sizes(*verb, options);
  add_number(*verb, "--tokens", options.n_tokens, 1, "tokens of the synthetic layer")
      ->expected(1)
      ->group(layer_group);
  verb->add_flag("--large", options.large_grid, "also 1000 configurations")->group(work_group);
  add_measuring(*verb, options);
  add_threads(*verb, options);
  add_output(*verb, options);
}

void add_memory(CLI::App& app, BenchOptions& options) {
  CLI::App* verb = add_verb(app, options, BenchVerb::memory, "memory",
                            "time and peak memory of the replay of a long synthetic capture");
  add_sizes(*verb, options);
  add_number(*verb, "--tokens", options.n_tokens, 1, "tokens of the captures")->group(layer_group);
  add_number(*verb, "--budget", options.budget, 1, "history keys kept")->group(work_group);
  add_threads(*verb, options);
  verb->add_option("--folder", options.folder,
                   "where the captures are written, and removed again [the system's]")
      ->type_name("DIR")
      ->group(output_group);
  add_output(*verb, options);
}

void add_synthetic(CLI::App& app, BenchOptions& options) {
  CLI::App* verb = add_verb(app, options, BenchVerb::synthetic, "synthetic",
                            "write a synthetic capture with the geometry of real layers");
  add_sizes(*verb, options);
  add_number(*verb, "--tokens", options.n_tokens, 1, "tokens of the capture")
      ->expected(1)
      ->group(layer_group);
  verb->add_option("--out", options.out, "capture to write")
      ->required()
      ->type_name("FILE")
      ->group(output_group);
}

std::string version_text() {
  const BuildInfo& build = build_info();
  return fmt::format("quoka-bench {} (commit {}, {})", build.version, build.commit, build.compiler);
}

/// The numbers that a verb uses where the command line gives none.
void fill_in(BenchOptions& options, const CLI::App& app) {
  const bool gave_head_dim = app.get_subcommands().front()->count("--head_dim") > 0;
  const auto use_if_empty = [](std::vector<Index>& numbers, std::vector<Index> defaults) {
    if (numbers.empty()) {
      numbers = std::move(defaults);
    }
  };
  switch (options.verb) {
    case BenchVerb::attention:
      use_if_empty(options.histories, {4096, 16384, 32768});
      if (!gave_head_dim) {
        options.head_dims = {64, 128};
      }
      break;
    case BenchVerb::prefill:
      use_if_empty(options.histories,
                   {1024, 1536, 2048, 3072, 4096, 8192, 16384, 32768, 65536, 131072});
      break;
    case BenchVerb::memory:
      use_if_empty(options.n_tokens, {8192, 16384, 32768});
      break;
    default:
      use_if_empty(options.n_tokens, {4096});
      break;
  }
  require<ConfigError>(options.verb == BenchVerb::attention || options.head_dims.size() == 1,
                       "{} values are given to --head_dim (only attention measures several); give "
                       "one",
                       options.head_dims.size());
  require<ConfigError>(options.n_q_heads % options.n_kv_heads == 0,
                       "--q_heads {} is not a multiple of --kv_heads {}; choose a multiple",
                       options.n_q_heads, options.n_kv_heads);
}

}  // namespace

BenchOptions parse_bench_options(int argc, const char* const* argv) {
  BenchOptions options;
  CLI::App app(
      "Measures dense attention, real sparse prefill stage by stage, and the sweep engine. Ratios "
      "are between measurements of one run; the median of several repetitions counts.",
      "quoka-bench");
  app.footer(
      "Example: quoka-bench prefill --history 4096 32768 --out prefill.h5\n"
      "Exit codes: 0 done, 2 bad options, 3 bad input file, 74 input or output error");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(0, 1);
  add_attention(app, options);
  add_prefill(app, options);
  add_sweep(app, options);
  add_memory(app, options);
  add_synthetic(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // prints help or version
      options.verb = BenchVerb::none;
      return options;
    }
    throw ConfigError(fmt::format("{}; see quoka-bench --help", error.what()));
  }
  require<ConfigError>(options.verb != BenchVerb::none,
                       "no verb is given; use one of attention, prefill, sweep, memory, synthetic, "
                       "or see quoka-bench --help");
  fill_in(options, app);
  return options;
}

}  // namespace quoka::apps
