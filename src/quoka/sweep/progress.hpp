#pragma once

#include <chrono>
#include <string>

#include "quoka/core/matrix.hpp"

namespace quoka {

/// line: one line on stderr, rewritten, for a terminal. log: one log message per finished unit.
enum class ProgressStyle { none, line, log };

/// Says how far a sweep is and how long it will take, from the share of its estimated operations.
class Progress {
 public:
  Progress(ProgressStyle style, Index n_units, double total_flops);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void start_unit(const std::string& name, double flops);
  /// done in [0, 1] of the current unit. Cheap: redraws at most ten times a second.
  void update(double done);
  void finish_unit(const std::string& what);

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] std::string time_left(double share) const;
  void draw(double done);
  void clear_line() const;

  ProgressStyle style_;
  Index n_units_;
  double total_flops_;
  Index unit_ = 0;  ///< finished units
  double finished_flops_ = 0;
  double unit_flops_ = 0;
  std::string name_;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point unit_begin_ = begin_;
  Clock::time_point drawn_;
};

/// "0:07", "12:34", "2:03:04".
std::string duration_text(double seconds);

}  // namespace quoka
