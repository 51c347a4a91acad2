#include <fmt/format.h>

#include <algorithm>

#include "quoka/attention/blocked.hpp"
#include "quoka_bench/bench_layer.hpp"
#include "quoka_bench/benches.hpp"

namespace quoka::apps {
namespace {

constexpr double giga = 1e9;

}  // namespace

double attention_operations(const AttentionShape& shape, double n_rows, double n_keys) {
  return 2 * static_cast<double>(shape.n_q_heads) * n_rows * n_keys *
         static_cast<double>(shape.k_head_dim + shape.v_head_dim);
}

Report bench_attention(const BenchOptions& options) {
  Report report("attention");
  report.set_setting("chunk_size", fmt::format("{}", options.chunk_size));
  report.set_setting("heads", fmt::format("{}:{}", options.n_q_heads, options.n_kv_heads));
  ProductYardstick yardstick;
  for (const Index head_dim : options.head_dims) {
    const BenchLayer layer(options, head_dim,
                           std::ranges::max(options.histories) + options.chunk_size);
    for (const Index history : options.histories) {
      const BenchChunk chunk = layer.chunk(history, options.chunk_size);
      const auto dense = [&chunk] {
        for (const GroupView& group : chunk.groups) {
          static_cast<void>(blocked_attention(group, chunk.rules, chunk.rows()));
        }
      };
      const auto samples = measure_in_turn({[&yardstick] { yardstick.run(); }, dense},
                                           options.warm_ups, options.repetitions);
      const auto n_rows = static_cast<double>(options.chunk_size);
      // A row sees the history and on average half of its chunk: masked products do not count.
      const double operations = attention_operations(
          layer.shape(), n_rows, static_cast<double>(history) + (n_rows + 1) / 2);
      report.begin_case(fmt::format("head_dim {} history {}", head_dim, history));
      report.set({"head_dim", "1", "width of a head"}, static_cast<double>(head_dim));
      report.set({"history", "1", "keys before the chunk"}, static_cast<double>(history));
      report.set_times("dense", "dense attention of all heads", samples[1]);
      report.set({"rate", "GFLOP/s", "operations on visible keys per second, median"},
                 operations / median(samples[1]) / giga);
      report.set({"product_rate", "GFLOP/s", "rate of a float32 product of size 1024, median"},
                 ProductYardstick::operations / median(samples[0]) / giga);
      report.set({"share", "1", "rate over product_rate, median over repetitions"},
                 median_ratio(samples[0], samples[1]) * operations / ProductYardstick::operations);
    }
  }
  return report;
}

}  // namespace quoka::apps
