#pragma once

#include <functional>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// Threads that this process may use: the size of its CPU affinity mask, at least 1.
int available_threads();

/// Calls task(item, thread) for every item in [0, n_items), items handed out in ascending order to
/// n_threads threads (the caller is thread 0).
///
/// Which thread runs an item is not fixed, so a task must write only to places of its item, or to
/// scratch space of its thread. After the first exception no further item starts; that exception is
/// rethrown once all threads have stopped.
///
/// Units / range: n_threads >= 1.
void parallel_for(Index n_items, int n_threads, const std::function<void(Index, int)>& task);

}  // namespace quoka
