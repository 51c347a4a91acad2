#pragma once

#include <atomic>
#include <string>

namespace quoka::apps {

/// Writes the text to standard output and flushes it. Throws: IoError.
void print_out(const std::string& text);

/// The command as one line that a shell reads back as the same words.
std::string command_line(int argc, const char* const* argv);

/// Set by SIGINT and SIGTERM after handle_stop_signals.
extern std::atomic<bool> stop_requested;

/// From now on the first SIGINT or SIGTERM sets stop_requested, a second one ends the program at
/// once, and a file size limit is an error of write, like a full disk.
void handle_stop_signals();

}  // namespace quoka::apps
