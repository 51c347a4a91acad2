#pragma once

#include "reference/naive_selection.hpp"

namespace quoka::naive {

/// One chunk of one KV head under one configuration: everything a score may depend on.
struct Place {
  const Layer& layer;
  const Dense& dense;
  IndexRange rows;
  Index kv_head;

  [[nodiscard]] Index head(Index in_group) const { return kv_head * layer.group_size() + in_group; }
  [[nodiscard]] const Row& key(Index position) const { return at(at(layer.k, kv_head), position); }
};

}  // namespace quoka::naive
