// The only file of this program that includes CLI11.
#include "quoka_check/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "quoka/core/build_info.hpp"
#include "quoka/core/error.hpp"

namespace quoka::apps {
namespace {

std::string default_metric_names() {
  std::vector<std::string> names;
  for (const CheckMetric& metric : default_check_metrics()) {
    names.push_back(metric.name);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

void add_profile(CLI::App& app, CheckArguments& arguments, std::string& group) {
  CLI::App* profile =
      app.add_subcommand("profile", "write down what a results file holds, with tolerances");
  profile->add_option("RESULTS", arguments.results_file, "results file of quoka-sweep")
      ->required()
      ->option_text("");
  profile->add_option("--out", arguments.out_file, "profile to write (JSON)")
      ->required()
      ->type_name("FILE");
  profile
      ->add_option("--group", group,
                   "which layers share a row: depth (early, middle and late third), layer, "
                   "layer_kind, all [depth]")
      ->type_name("WHAT");
  profile
      ->add_option("--metric", arguments.profile.metrics,
                   fmt::format("variables of the results to hold [{}]", default_metric_names()))
      ->type_name("NAME");
  profile
      ->add_option("--tolerance", arguments.profile.tolerances,
                   "allowed change of a metric, absolute (METRIC=0.02) or relative to the expected "
                   "value (METRIC=5%) [by kind of metric: docs/new-model.md]")
      ->type_name("METRIC=VALUE");
  profile->callback([&arguments] { arguments.verb = CheckVerb::profile; });
}

void add_check(CLI::App& app, CheckArguments& arguments) {
  CLI::App* check = app.add_subcommand("check", "compare a results file with a profile");
  check->add_option("RESULTS", arguments.results_file, "results file of quoka-sweep")
      ->required()
      ->option_text("");
  check->add_option("PROFILE", arguments.profile_file, "profile of quoka-check profile")
      ->required()
      ->option_text("");
  check->add_option("--junit", arguments.junit_file, "write JUnit XML too")->type_name("FILE");
  check->add_option("--markdown", arguments.markdown_file, "write Markdown too")->type_name("FILE");
  check->callback([&arguments] { arguments.verb = CheckVerb::check; });
}

}  // namespace

CheckArguments parse_arguments(int argc, const char* const* argv) {
  CheckArguments arguments;
  std::string group = "depth";
  CLI::App app(
      "Guards results: makes a small profile of a results file, and compares later results, of the "
      "same\nmodel or another, with it.",
      "quoka-check");
  const BuildInfo& build = build_info();
  app.set_version_flag("--version", fmt::format("quoka-check {} (commit {}, {})", build.version,
                                                build.commit, build.compiler));
  app.footer(
      "Example: quoka-check profile results/good.h5 --out profile.json\n"
      "         quoka-check check results/new.h5 profile.json --junit check.xml\n"
      "Exit codes: 0 done (check: every row passed), 2 bad options, or results of another sweep "
      "than "
      "the\nprofile's, 3 bad input file, 4 a row failed, 74 input or output error");
  app.require_subcommand(0, 1);
  add_profile(app, arguments, group);
  add_check(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error);  // prints help or version
      return {};
    }
    throw ConfigError(
        fmt::format("{}; see quoka-check --help and quoka-check VERB --help", error.what()));
  }
  require<ConfigError>(arguments.verb != CheckVerb::none,
                       "no verb is given; use one of profile, check, or see quoka-check --help");
  arguments.profile.grouping = parse_layer_grouping(group);
  return arguments;
}

}  // namespace quoka::apps
