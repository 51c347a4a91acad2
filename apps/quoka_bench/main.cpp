// quoka-bench: the time of dense attention, of sparse prefill by stage, and of the sweep engine.

#include <fmt/format.h>

#include <cstdio>

#include "common/exit_codes.hpp"
#include "common/program.hpp"
#include "quoka/capture/synthetic.hpp"
#include "quoka/core/error.hpp"
#include "quoka/results/provenance.hpp"
#include "quoka_bench/bench_layer.hpp"
#include "quoka_bench/benches.hpp"
#include "quoka_bench/options.hpp"

namespace {

using namespace quoka;
using namespace quoka::apps;

Report measure(const BenchOptions& options) {
  switch (options.verb) {
    case BenchVerb::attention:
      return bench_attention(options);
    case BenchVerb::prefill:
      return bench_prefill(options);
    case BenchVerb::sweep:
      return bench_sweep(options);
    default:
      return bench_memory(options);
  }
}

void describe_machine(Report& report, const BenchOptions& options, int cpu,
                      const std::string& line) {
  const Provenance here = local_provenance();
  report.set_setting("cpu", here.cpu);
  report.set_setting("pinned_to", cpu < 0 ? "nothing" : fmt::format("processor {}", cpu));
  report.set_setting("flags", here.flags);
  report.set_setting("compiler", here.compiler);
  report.set_setting("packages", here.packages);
  report.set_setting("version", fmt::format("{} (commit {})", here.version, here.commit));
  report.set_setting("host", here.host);
  report.set_setting("time_utc", here.created_utc);
  report.set_setting("command_line", line);
  if (options.verb != BenchVerb::memory) {
    report.set_setting("repetitions",
                       fmt::format("{} after {} warm-ups", options.repetitions, options.warm_ups));
  }
}

ExitCode run_program(int argc, const char* const* argv) {
  const BenchOptions options = parse_bench_options(argc, argv);
  if (options.verb == BenchVerb::none) {
    return exit_done;
  }
  if (options.verb == BenchVerb::synthetic) {
    write_synthetic_capture(options.out, synthetic_options(options, options.head_dims.front(),
                                                           options.n_tokens.front()));
    return exit_done;
  }
  const int cpu = options.n_threads == 1 ? pin_to_cpu(options.cpu) : -1;
  Report report = measure(options);
  describe_machine(report, options, cpu, command_line(argc, argv));
  print_out(options.json ? report.json() : report.text());
  if (!options.out.empty()) {
    report.write(options.out);
  }
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (...) {
    return quoka::apps::report_exception("quoka-bench");
  }
}
