#include "quoka/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "support/catch.hpp"

namespace quoka {

TEST_CASE("every item runs exactly once for any number of threads", "[core][parallel]") {
  for (const int n_threads : {1, 2, 3, 16}) {
    for (const Index n_items : {0, 1, 2, 100}) {
      std::vector<std::atomic<int>> n_runs(static_cast<std::size_t>(n_items));
      parallel_for(n_items, n_threads,
                   [&](Index item, int /*thread*/) { ++n_runs[static_cast<std::size_t>(item)]; });
      CHECK(std::ranges::all_of(n_runs, [](const auto& n) { return n == 1; }));
    }
  }
}

TEST_CASE("thread numbers index scratch space of n_threads places", "[core][parallel]") {
  std::vector<std::atomic<int>> users(3);
  std::atomic<bool> is_clean{true};
  parallel_for(200, 3, [&](Index /*item*/, int thread) {
    if (thread < 0 || thread >= 3) {
      is_clean = false;
      return;
    }
    // Two items at one time with one thread number would meet here.
    if (++users[static_cast<std::size_t>(thread)] != 1) {
      is_clean = false;
    }
    --users[static_cast<std::size_t>(thread)];
  });
  CHECK(is_clean);
}

TEST_CASE("one thread runs the items in order", "[core][parallel]") {
  std::vector<Index> order;
  parallel_for(4, 1, [&](Index item, int thread) {
    CHECK(thread == 0);
    order.push_back(item);
  });
  CHECK(order == std::vector<Index>{0, 1, 2, 3});
}

TEST_CASE("the first exception stops the loop and arrives at the caller", "[core][parallel]") {
  for (const int n_threads : {1, 4}) {
    std::atomic<int> n_runs{0};
    const auto task = [&](Index item, int /*thread*/) {
      ++n_runs;
      if (item == 10) {
        throw std::runtime_error("item ten");
      }
    };
    CHECK_THROWS_WITH(parallel_for(1'000'000, n_threads, task), "item ten");
    CHECK(n_runs < 1'000'000);
  }
}

TEST_CASE("there is at least one thread", "[core][parallel]") { CHECK(available_threads() >= 1); }

}  // namespace quoka
