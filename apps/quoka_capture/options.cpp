// The only file of this program that includes CLI11.
#include "quoka_capture/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "quoka/core/build_info.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/parallel.hpp"

namespace quoka::apps {
namespace {

constexpr const char* safety_group = "Damaged and hostile files";

// What is written differently on the command line than in the arguments.
struct RawOptions {
  std::string tokens;
  std::string dtype;
};

void add_input(CLI::App& verb, CaptureArguments& arguments, const char* what) {
  verb.add_option("CAPTURE", arguments.input, what)->required()->option_text("");
}

void add_limits(CLI::App& verb, CaptureArguments& arguments) {
  verb.add_option(
          "--max-bytes", arguments.limits.max_tensor_bytes,
          fmt::format("largest unpacked tensor in bytes [{}]", arguments.limits.max_tensor_bytes))
      ->type_name("N")
      ->group(safety_group);
  verb.add_option("--max-dim", arguments.limits.max_dim,
                  fmt::format("largest extent of a tensor [{}]", arguments.limits.max_dim))
      ->type_name("N")
      ->group(safety_group);
}

void add_child_options(CLI::App& verb, CaptureArguments& arguments) {
  add_limits(verb, arguments);
  verb.add_flag("--trusted", arguments.trusted,
                "open the file at once, not first in a child process with limits")
      ->group(safety_group);
  verb.add_option("--timeout", arguments.timeout_seconds,
                  "seconds for the child process [20, and 1 per 20 MB]")
      ->type_name("N")
      ->group(safety_group);
}

CLI::App* add_verb(CLI::App& app, CaptureArguments& arguments, const char* name,
                   const char* description, CaptureVerb verb) {
  CLI::App* added = app.add_subcommand(name, description);
  added->callback([&arguments, verb] { arguments.verb = verb; });
  return added;
}

void add_verbs(CLI::App& app, CaptureArguments& arguments, RawOptions& raw) {
  CLI::App* inspect =
      add_verb(app, arguments, "inspect", "print what is in a capture", CaptureVerb::inspect);
  add_input(*inspect, arguments, "capture");
  inspect->add_flag("--json", arguments.json, "print JSON");
  add_child_options(*inspect, arguments);

  CLI::App* verify =
      add_verb(app, arguments, "verify", "replay every layer and compare with the stored output",
               CaptureVerb::verify);
  add_input(*verify, arguments, "capture");
  verify->add_flag("--json", arguments.json, "print JSON, with every head");
  verify->add_flag("!--no-record", arguments.record,
                   "do not write the verdict to CAPTURE.verified.json");
  verify->add_option("--threads", arguments.n_threads, "threads [all that this process may use]")
      ->type_name("N");
  add_child_options(*verify, arguments);

  CLI::App* import = add_verb(app, arguments, "import", "make a capture of a safetensors file",
                              CaptureVerb::import);
  import->add_option("SAFETENSORS", arguments.input, "file to read")->required();
  import->add_option("--out", arguments.output, "capture to write")->required()->type_name("FILE");

  CLI::App* cut = add_verb(app, arguments, "cut", "write a part of a capture", CaptureVerb::cut);
  add_input(*cut, arguments, "capture");
  cut->add_option("--out", arguments.output, "capture to write")->required()->type_name("FILE");
  cut->add_option("--layers", arguments.cut.layers, "layers to keep [all]")->type_name("N");
  cut->add_option("--kv-heads", arguments.cut.kv_heads,
                  "KV heads to keep, with their query heads [all]")
      ->type_name("N");
  cut->add_option("--tokens", raw.tokens,
                  "positions to keep, B:E or :E; rows of q in [B, E), keys in [0, E)")
      ->type_name("B:E");
  cut->add_option("--dtype", raw.dtype, "number format of q, k and v [as it is]")
      ->check(CLI::IsMember({"float16", "bfloat16", "float32"}))
      ->type_name("TYPE");
  add_child_options(*cut, arguments);

  CLI::App* checksum =
      add_verb(app, arguments, "checksum", "print the SHA-256 of the file and of each tensor",
               CaptureVerb::checksum);
  add_input(*checksum, arguments, "capture");
  add_child_options(*checksum, arguments);

  CLI::App* probe = add_verb(app, arguments, "probe", "open a capture", CaptureVerb::probe);
  probe->group("");  // not in the help: what the child process runs
  add_input(*probe, arguments, "capture");
  probe->add_flag("--read", arguments.read_tensors);
  add_limits(*probe, arguments);
}

Index parse_position(const std::string& text) {
  Index value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require<ConfigError>(error == std::errc{} && end == text.data() + text.size() && value >= 0,
                       "--tokens: '{}' is not a position; write B:E or :E", text);
  return value;
}

void apply(const RawOptions& raw, CaptureArguments& arguments) {
  if (!raw.tokens.empty()) {
    const std::size_t colon = raw.tokens.find(':');
    require<ConfigError>(colon != std::string::npos,
                         "--tokens {}: there is no colon; write B:E or :E", raw.tokens);
    const std::string begin = raw.tokens.substr(0, colon);
    arguments.cut.tokens = IndexRange{begin.empty() ? -1 : parse_position(begin),
                                      parse_position(raw.tokens.substr(colon + 1))};
  }
  if (!raw.dtype.empty()) {
    arguments.cut.storage = raw.dtype == "float16"    ? StorageType::float16
                            : raw.dtype == "bfloat16" ? StorageType::bfloat16
                                                      : StorageType::float32;
  }
  require<ConfigError>(arguments.n_threads >= 1, "--threads {} is not positive; use 1 or more",
                       arguments.n_threads);
  require<ConfigError>(arguments.limits.max_dim >= 1 && arguments.limits.max_tensor_bytes >= 1 &&
                           arguments.timeout_seconds >= 0,
                       "--max-bytes, --max-dim and --timeout must be positive");
}

}  // namespace

CaptureArguments parse_arguments(int argc, const char* const* argv) {
  CaptureArguments arguments;
  arguments.n_threads = available_threads();
  RawOptions raw;
  CLI::App app(
      "Looks into captures of attention layers, verifies them against their own stored output, "
      "imports\nsafetensors files, cuts pieces out.",
      "quoka-capture");
  const BuildInfo& build = build_info();
  app.set_version_flag("--version", fmt::format("quoka-capture {} (commit {}, {})", build.version,
                                                build.commit, build.compiler));
  app.footer(
      "Example: quoka-capture verify data/smollm2-135m_needles_2k.h5\n"
      "Exit codes: 0 done (verify: every layer passed), 2 bad options, 3 bad input file or nothing "
      "to\ncompare with, 4 a layer failed, 74 input or output error");
  app.require_subcommand(0, 1);
  add_verbs(app, arguments, raw);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // prints help or version
      arguments.verb = CaptureVerb::none;
      return arguments;
    }
    throw ConfigError(
        fmt::format("{}; see quoka-capture --help and quoka-capture VERB --help", error.what()));
  }
  require<ConfigError>(arguments.verb != CaptureVerb::none,
                       "no verb is given; use one of inspect, verify, import, cut, checksum, or "
                       "see quoka-capture --help");
  apply(raw, arguments);
  return arguments;
}

}  // namespace quoka::apps
