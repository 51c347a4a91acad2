#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka::apps {

/// Seconds of one task, one value per repetition.
using Samples = std::vector<double>;

/// Time that passed between calls.
class LapClock {
 public:
  /// Seconds since the last call, or since construction.
  double lap();

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Keeps this process on one processor: `cpu`, or the first that it may use if that is negative.
/// Returns the processor. Throws: ConfigError if it may not be used.
int pin_to_cpu(int cpu);

/// Runs all tasks in turn, warm_ups + repetitions times, so that a slow spell of the machine meets
/// them all; returns the samples of each task after the warm-up.
std::vector<Samples> measure_in_turn(const std::vector<std::function<void()>>& tasks, int warm_ups,
                                     int repetitions);

double median(Samples samples);
double smallest(const Samples& samples);
double largest(const Samples& samples);

/// Median of a[i] / b[i]: the ratio of two tasks measured in turn.
double median_ratio(const Samples& a, const Samples& b);

/// Seconds of a float32 1024 x 1024 x 1024 product with Eigen: the yardstick of a core.
class ProductYardstick {
 public:
  ProductYardstick();
  void run();
  static constexpr double operations = 2.0 * 1024 * 1024 * 1024;

 private:
  Matrix a_;
  Matrix b_;
  Matrix c_;
};

/// Operations per second of multiply-adds on numbers in registers: what no kernel can exceed.
double peak_rate(int warm_ups, int repetitions);

/// Bytes per second of reading a block far larger than the caches once.
double read_rate(int warm_ups, int repetitions);

}  // namespace quoka::apps
