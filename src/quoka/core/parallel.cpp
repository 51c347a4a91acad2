#include "quoka/core/parallel.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "quoka/core/error.hpp"

namespace quoka {

int available_threads() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    return std::max(1, CPU_COUNT(&mask));
  }
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void parallel_for(Index n_items, int n_threads, const std::function<void(Index, int)>& task) {
  QUOKA_ASSERT(n_threads >= 1);
  std::atomic<Index> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr first_exception;
  std::mutex exception_mutex;

  const auto work = [&](int thread) {
    while (!failed.load()) {
      const Index item = next.fetch_add(1);
      if (item >= n_items) {
        return;
      }
      try {
        task(item, thread);
      } catch (...) {
        const std::lock_guard lock(exception_mutex);
        if (!first_exception) {
          first_exception = std::current_exception();
        }
        failed = true;
      }
    }
  };

  std::vector<std::jthread> helpers;
  const int n_helpers = static_cast<int>(std::min<Index>(n_threads, n_items)) - 1;
  for (int thread = 1; thread <= n_helpers; ++thread) {
    helpers.emplace_back(work, thread);
  }
  work(0);
  helpers.clear();  // joins
  if (first_exception) {
    std::rethrow_exception(first_exception);
  }
}

}  // namespace quoka
