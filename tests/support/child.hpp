#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace quoka::test {

/// Runs the body in a child process in which no file may grow beyond n_bytes (this stands for a
/// full disk) and returns the exit code: what the body returned, or -1 if the child was killed by a
/// signal. The child leaves through exit(), so crashes of exit handlers are seen.
template <typename Body>
int exit_code_with_file_limit(rlim_t n_bytes, Body body) {
  fflush(nullptr);  // or the child would print it once more
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);  // the write then fails with EFBIG
    const rlimit limit{n_bytes, n_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
    exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace quoka::test
