#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "common/exit_codes.hpp"
#include "quoka/capture/reader.hpp"
#include "quoka/core/error.hpp"
#include "quoka/replay/replay.hpp"
#include "quoka/sweep/layer_input.hpp"
#include "quoka_bench/bench_layer.hpp"
#include "quoka_bench/benches.hpp"

namespace quoka::apps {
namespace {

/// A capture that lives as long as this object.
class TemporaryCapture {
 public:
  TemporaryCapture(const BenchOptions& options, Index n_tokens) {
    const std::filesystem::path folder = options.folder.empty()
                                             ? std::filesystem::temp_directory_path()
                                             : std::filesystem::path(options.folder);
    path_ = folder / fmt::format("quoka-bench-{}-{}.h5", getpid(), n_tokens);
    write_synthetic_capture(path_, synthetic_options(options, options.head_dims.front(), n_tokens));
  }
  ~TemporaryCapture() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryCapture(const TemporaryCapture&) = delete;
  TemporaryCapture& operator=(const TemporaryCapture&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// Two configurations: QUOKA and the best possible keys.
std::vector<SelectorConfig> two_configs(Index budget) {
  SelectorConfig quoka;
  quoka.budget = Budget::from_keys(budget);
  SelectorConfig oracle = quoka;
  oracle.selector = SelectorKind::oracle;
  return {quoka, oracle};
}

void replay(const std::filesystem::path& path, const std::vector<SelectorConfig>& configs,
            const ReplaySettings& settings) {
  const CaptureReader reader(path);
  static_cast<void>(
      replay_layer(layer_input(reader, reader.layers().front().layer_idx), configs, settings));
}

struct Usage {
  double seconds = 0;
  double peak_bytes = 0;
};

/// Replays in a child process, whose peak memory the system knows.
Usage replay_in_child(const std::filesystem::path& path, const std::vector<SelectorConfig>& configs,
                      const ReplaySettings& settings) {
  LapClock clock;
  const pid_t child = fork();
  require<IoError>(child >= 0, "a child process cannot be started");
  if (child == 0) {
    try {
      replay(path, configs, settings);
      _exit(exit_done);
    } catch (...) {
      _exit(report_exception("quoka-bench"));
    }
  }
  int status = 0;
  rusage usage{};
  require<IoError>(wait4(child, &status, 0, &usage) == child,
                   "the child process cannot be waited for");
  require<IoError>(WIFEXITED(status) && WEXITSTATUS(status) == exit_done,
                   "the replay of {} ended with status {} (out of memory?)", path.string(), status);
  constexpr double kibi = 1024;
  return {clock.lap(), static_cast<double>(usage.ru_maxrss) * kibi};
}

/// Slope of log seconds over log tokens by least squares.
double fitted_exponent(const std::vector<Index>& n_tokens, const std::vector<double>& seconds) {
  const auto n = static_cast<Index>(seconds.size());
  VectorD x(n);
  VectorD y(n);
  for (Index i = 0; i < n; ++i) {
    x[i] = std::log(static_cast<double>(n_tokens[static_cast<std::size_t>(i)]));
    y[i] = std::log(seconds[static_cast<std::size_t>(i)]);
  }
  const VectorD dx = x.array() - x.mean();
  return dx.dot(y) / dx.squaredNorm();
}

}  // namespace

Report bench_memory(const BenchOptions& options) {
  Report report("memory");
  report.set_setting("heads", fmt::format("{}:{}, head_dim {}", options.n_q_heads,
                                          options.n_kv_heads, options.head_dims.front()));
  report.set_setting("threads", fmt::format("{}", options.n_threads));
  const std::vector<SelectorConfig> configs = two_configs(options.budget);
  const ReplaySettings settings{.n_threads = options.n_threads};
  std::vector<double> seconds;
  for (const Index n_tokens : options.n_tokens) {
    const TemporaryCapture capture(options, n_tokens);
    const Usage usage = replay_in_child(capture.path(), configs, settings);
    seconds.push_back(usage.seconds);
    const AttentionShape shape =
        synthetic_layer(synthetic_options(options, options.head_dims.front(), n_tokens), 0).shape;
    constexpr double mebi = 1024 * 1024;
    report.begin_case(fmt::format("{} tokens", n_tokens));
    report.set({"n_tokens", "1", "tokens of the capture"}, static_cast<double>(n_tokens));
    report.set({"time", "s", "replay of one layer under two configurations, reading included"},
               usage.seconds);
    report.set({"peak", "MiB", "peak resident memory of the process"}, usage.peak_bytes / mebi);
    report.set({"estimate", "MiB", "what replay_bytes says"},
               static_cast<double>(replay_bytes(shape, configs, settings)) / mebi);
  }
  if (seconds.size() > 1) {
    report.set_fact({"exponent", "1", "of time against tokens, least squares on logarithms"},
                    fitted_exponent(options.n_tokens, seconds));
  }
  return report;
}

}  // namespace quoka::apps
