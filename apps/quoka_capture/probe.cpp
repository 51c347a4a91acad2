#include "quoka_capture/probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "quoka/core/error.hpp"

namespace quoka::apps {
namespace {

// Far above what opening and reading in blocks need (chunks end at 64 MiB).
constexpr rlim_t max_child_memory = rlim_t{2} << 30;
constexpr std::size_t max_message = std::size_t{64} << 10;

#if defined(__SANITIZE_ADDRESS__)  // gcc
#define QUOKA_ADDRESS_SANITIZER
#elif defined(__has_feature)  // clang; some headers define it for gcc too
#if __has_feature(address_sanitizer)
#define QUOKA_ADDRESS_SANITIZER
#endif
#endif
#ifdef QUOKA_ADDRESS_SANITIZER
constexpr bool limits_memory = false;  // the sanitizer reserves terabytes of addresses
#else
constexpr bool limits_memory = true;
#endif

int timeout_of(const CaptureArguments& arguments) {
  if (arguments.timeout_seconds > 0) {
    return arguments.timeout_seconds;
  }
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(arguments.input, error);
  constexpr std::uintmax_t bytes_per_second = 20'000'000;  // a slow network disk
  constexpr int least = 20;
  return error ? least : least + static_cast<int>(bytes / bytes_per_second);
}

// Only async-signal-safe calls: between fork and exec.
[[noreturn]] void run_child(const std::vector<char*>& argv, int message_pipe, int seconds) {
  const auto limit = [](auto resource, rlim_t value) {
    const rlimit both{value, value};
    setrlimit(resource, &both);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  limit(RLIMIT_CPU, static_cast<rlim_t>(seconds));
  if (limits_memory) {
    limit(RLIMIT_AS, max_child_memory);
  }
  dup2(message_pipe, STDERR_FILENO);
  execv("/proc/self/exe", argv.data());
  _exit(exit_internal);
}

/// Reads the child's messages until it closes them or the time is over.
bool read_messages(int pipe, int seconds, std::string& messages) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  std::array<char, 4096> buffer{};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd event{pipe, POLLIN, 0};
    const int ready = poll(&event, 1, std::max(0, static_cast<int>(left.count())));
    if (ready == 0) {
      return false;
    }
    const ssize_t n = ready < 0 ? -1 : read(pipe, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return true;
    }
    messages.append(buffer.data(), static_cast<std::size_t>(n));
    messages.resize(std::min(messages.size(), max_message));
  }
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

std::vector<std::string> child_words(const CaptureArguments& arguments, ProbeDepth depth) {
  std::vector<std::string> words = {
      "quoka-capture", "probe",
      "--max-bytes",   std::to_string(arguments.limits.max_tensor_bytes),
      "--max-dim",     std::to_string(arguments.limits.max_dim)};
  if (depth == ProbeDepth::tensors) {
    words.emplace_back("--read");
  }
  words.emplace_back("--");
  words.push_back(arguments.input);
  return words;
}

}  // namespace

std::optional<int> probe_in_child(const CaptureArguments& arguments, ProbeDepth depth) {
  std::vector<std::string> words = child_words(arguments, depth);
  std::vector<char*> argv;
  for (std::string& word : words) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  const int seconds = timeout_of(arguments);

  std::array<int, 2> ends{};
  require<IoError>(pipe2(ends.data(), O_CLOEXEC) == 0, "cannot create a pipe ({})",
                   std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    run_child(argv, ends[1], seconds);
  }
  close(ends[1]);
  std::string messages;
  const bool in_time = child > 0 && read_messages(ends[0], seconds, messages);
  close(ends[0]);
  require<IoError>(child > 0, "cannot start a child process ({}); --trusted does without",
                   std::strerror(errno));
  if (!in_time) {
    kill(child, SIGKILL);
  }
  const int status = wait_for(child);
  const bool out_of_time =
      !in_time ||
      (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL));
  require<FormatError>(!out_of_time,
                       "{} hangs the HDF5 library (reading it took more than {} s in a child "
                       "process); make the file again, or give it more time with --timeout",
                       arguments.input, seconds);
  require<FormatError>(!WIFSIGNALED(status),
                       "{} crashes the HDF5 library (signal {} in a child process); the file is "
                       "damaged or hostile, make it again",
                       arguments.input, WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  if (code == exit_internal) {  // a failed allocation under the memory limit, above all
    throw FormatError(fmt::format("{} cannot be read within limits in a child process: {}",
                                  arguments.input, messages));
  }
  if (code != exit_done) {
    std::fwrite(messages.data(), 1, messages.size(), stderr);
    return code;
  }
  return std::nullopt;
}

void probe(const CaptureArguments& arguments) {
  const CaptureReader reader(arguments.input, arguments.limits);
  if (!arguments.read_tensors) {
    return;
  }
  constexpr Index block_rows = 1024;
  const auto in_blocks = [](Index n_rows, const auto& read) {
    for (Index begin = 0; begin < n_rows; begin += block_rows) {
      read(IndexRange{begin, std::min(n_rows, begin + block_rows)});
    }
  };
  for (const CaptureLayer& layer : reader.layers()) {
    for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v, Tensor::out}) {
      const Index heads =
          tensor == Tensor::out && !layer.has_out ? 0 : n_heads(layer.shape, tensor);
      for (Index head = 0; head < heads; ++head) {
        in_blocks(n_rows(layer.shape, tensor), [&](IndexRange rows) {
          static_cast<void>(reader.read_rows(layer.layer_idx, tensor, head, rows));
        });
      }
    }
    for (Index head = 0; layer.has_lse && head < layer.shape.n_q_heads; ++head) {
      in_blocks(layer.shape.n_tokens, [&](IndexRange rows) {
        static_cast<void>(reader.read_lse(layer.layer_idx, head, rows));
      });
    }
  }
}

}  // namespace quoka::apps
