#include "quoka_bench/clock.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "quoka/core/error.hpp"

namespace quoka::apps {
namespace {

/// Where results of measured code go, so that the code is not optimised away.
volatile float sink = 0;

/// Eight sums of 32 numbers, which fill half of the 32 registers of 16 floats.
constexpr int width = 32;
using Lane = Eigen::Array<float, width, 1>;
constexpr std::size_t n_sums = 8;

template <std::size_t... I>
float multiply_add(int n, float factor, float term, std::index_sequence<I...>) {
  std::array<Lane, n_sums> sums;
  ((sums[I] = Lane::Constant(static_cast<float>(I))), ...);
  for (int i = 0; i < n; ++i) {
    ((sums[I] = sums[I] * factor + term), ...);
  }
  return (sums[I].sum() + ...);
}

}  // namespace

double LapClock::lap() {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> passed = now - last_;
  last_ = now;
  return passed.count();
}

int pin_to_cpu(int cpu) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  require<IoError>(sched_getaffinity(0, sizeof(allowed), &allowed) == 0,
                   "the system does not say on which processors this process may run");
  std::size_t chosen = cpu < 0 ? 0 : static_cast<std::size_t>(cpu);
  while (cpu < 0 && chosen < CPU_SETSIZE && !CPU_ISSET(chosen, &allowed)) {
    ++chosen;
  }
  const bool is_allowed = chosen < CPU_SETSIZE && CPU_ISSET(chosen, &allowed);
  cpu_set_t one;
  CPU_ZERO(&one);
  if (is_allowed) {
    CPU_SET(chosen, &one);
  }
  require<ConfigError>(is_allowed && sched_setaffinity(0, sizeof(one), &one) == 0,
                       "processor {} cannot be used by this process; give another --cpu", chosen);
  return static_cast<int>(chosen);
}

std::vector<Samples> measure_in_turn(const std::vector<std::function<void()>>& tasks, int warm_ups,
                                     int repetitions) {
  std::vector<Samples> samples(tasks.size());
  for (int round = -warm_ups; round < repetitions; ++round) {
    for (std::size_t task = 0; task < tasks.size(); ++task) {
      LapClock clock;
      tasks[task]();
      if (round >= 0) {
        samples[task].push_back(clock.lap());
      }
    }
  }
  return samples;
}

double median(Samples samples) {
  std::ranges::sort(samples);
  const std::size_t n = samples.size();
  return (samples[(n - 1) / 2] + samples[n / 2]) / 2;
}

double smallest(const Samples& samples) { return std::ranges::min(samples); }

double largest(const Samples& samples) { return std::ranges::max(samples); }

double median_ratio(const Samples& a, const Samples& b) {
  Samples ratios(a.size());
  std::ranges::transform(a, b, ratios.begin(), std::divides<>());
  return median(ratios);
}

ProductYardstick::ProductYardstick()
    : a_(Matrix::Random(1024, 1024)), b_(Matrix::Random(1024, 1024)), c_(1024, 1024) {}

void ProductYardstick::run() {
  c_.noalias() = a_ * b_;
  sink = c_(1, 1);
}

double peak_rate(int warm_ups, int repetitions) {
  constexpr int n = 1'000'000;
  sink = 0.5F;
  const auto run = [] {
    sink = multiply_add(n, sink, sink, std::make_index_sequence<n_sums>());
    sink = 0.5F;
  };
  const auto samples = measure_in_turn({run}, warm_ups, repetitions);
  return 2.0 * n * n_sums * width / smallest(samples.front());
}

double read_rate(int warm_ups, int repetitions) {
  const Vector block = Vector::Constant(Index{1} << 26, 1.0F);  // 256 MiB
  const auto read = [&block] { sink = block.maxCoeff(); };
  const auto samples = measure_in_turn({read}, warm_ups, repetitions);
  return static_cast<double>(block.size()) * sizeof(float) / median(samples.front());
}

}  // namespace quoka::apps
