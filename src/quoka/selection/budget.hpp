#pragma once

#include <string>
#include <string_view>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// How many keys a chunk keeps per KV head: a number of keys, or a percentage of the candidates.
class Budget {
 public:
  /// Units / range: keys >= 1. Throws: ConfigError.
  static Budget from_keys(Index keys);

  /// Reads "256" or "12.5%". A percentage is kept as the decimal that was written, so that 10 % of
  /// 30 candidates is 3 keys, not the 4 that binary rounding would give.
  ///
  /// `name` is what messages call it. Throws: ConfigError for anything that is not a whole number
  /// >= 1 or a percentage above 0 and at most 100 with at most six decimals.
  static Budget parse(std::string_view text, std::string_view name = "budget");

  /// Keys requested among n_candidates: the number itself, or the percentage rounded up, at
  /// least 1. May exceed n_candidates: the chunk is then dense-equivalent.
  [[nodiscard]] Index keys(Index n_candidates) const;

  [[nodiscard]] bool is_percentage() const { return micro_percent_ > 0; }
  [[nodiscard]] double percent() const;  ///< in (0, 100]; NaN if not a percentage

  /// Canonical spelling: "256", "12.5%"; equal budgets have equal text.
  [[nodiscard]] std::string text() const;
  bool operator==(const Budget&) const = default;

 private:
  Index keys_ = 1024;
  Index micro_percent_ = 0;  ///< percentage in units of 1e-6 %; 0 = the budget is keys_
};

}  // namespace quoka
