#include "common/program.hpp"

#include <signal.h>

#include <cstdio>

#include "quoka/core/error.hpp"

namespace quoka::apps {
namespace {

void on_stop_signal(int) { stop_requested.store(true); }

}  // namespace

std::atomic<bool> stop_requested{false};  // written by the signal handler
static_assert(std::atomic<bool>::is_always_lock_free);

void print_out(const std::string& text) {
  const bool is_written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  require<IoError>(is_written, "standard output cannot be written");
}

std::string command_line(int argc, const char* const* argv) {
  std::string line;
  for (int i = 0; i < argc; ++i) {
    const std::string word = argv[i];
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                            "0123456789_-+=./:,%@") == std::string::npos;
    std::string quoted;
    for (const char c : word) {
      quoted += c == '\'' ? "'\\''" : std::string(1, c);
    }
    line += (i == 0 ? "" : " ") + (plain ? word : "'" + quoted + "'");
  }
  return line;
}

void handle_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGXFSZ, SIG_IGN);
}

}  // namespace quoka::apps
