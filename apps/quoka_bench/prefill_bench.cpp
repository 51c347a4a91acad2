#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "quoka/geometry/unit_rows.hpp"
#include "quoka/prefill/best_keys.hpp"
#include "quoka/prefill/key_scores.hpp"
#include "quoka/prefill/prefill_chunk.hpp"
#include "quoka/prefill/query_slots.hpp"
#include "quoka_bench/bench_layer.hpp"
#include "quoka_bench/benches.hpp"

namespace quoka::apps {
namespace {

/// The stages of an engine. `recompute` replaces `unit_keys` and `score` where no unit keys are
/// kept.
enum Stage { keep_queries, unit_keys, score, top_k, gather, attend, recompute };
constexpr std::array<std::string_view, 7> stage_names{
    "keep_queries", "unit_keys", "score", "top_k", "gather", "attend", "recompute"};
constexpr std::array<std::string_view, 7> stage_meanings{
    "choosing the rows that score",
    "unit vectors of the chunk's own keys, once per key",
    "scores of all history keys",
    "choosing the keys",
    "copying the kept keys and values",
    "attention to the kept keys and the own chunk",
    "scores of all history keys if no unit vectors are kept from earlier chunks"};

using StageSamples = std::array<Samples, stage_names.size()>;

/// What was measured for one length of the history.
struct Measured {
  Samples dense;
  StageSamples stages;  ///< empty without selection
  Samples cached;       ///< sum of the stages with unit keys kept from earlier chunks
  Samples recomputed;   ///< sum with unit vectors of the whole history made again
};

/// One chunk through all stages, KV head after KV head; adds the seconds of each stage.
void run_stages(const BenchChunk& chunk, const PrefillSettings& settings,
                std::vector<Matrix>& unit_caches, std::array<double, stage_names.size()>& seconds) {
  const Index history = chunk.history();
  const IndexRange own{history, history + chunk.rows().size()};
  for (std::size_t head = 0; head < unit_caches.size(); ++head) {
    const GroupView& group = chunk.groups[head];
    LapClock clock;
    unit_caches[head].middleRows(own.begin, own.size()) = unit_rows(row_view(group.k, own)).rows;
    seconds[unit_keys] += clock.lap();
    const Matrix slots = query_slots(group, chunk.rows(), settings.n_sel_queries);
    seconds[keep_queries] += clock.lap();
    const Vector scores = best_products(row_view(view(unit_caches[head]), {0, history}), slots);
    seconds[score] += clock.lap();
    const std::vector<std::int32_t> keys = best_keys(scores, settings.budget);
    seconds[top_k] += clock.lap();
    const GatheredKeys kept = gather_keys(group, keys);
    seconds[gather] += clock.lap();
    static_cast<void>(attend_kept(group, chunk.rules, chunk.rows(), kept));
    seconds[attend] += clock.lap();
    // Last, so that it does not bring the keys into the caches for the stages above.
    static_cast<void>(best_cosines(row_view(group.k, {0, history}), slots));
    seconds[recompute] += clock.lap();
  }
}

Measured measure(const BenchChunk& chunk, const PrefillSettings& settings,
                 const BenchOptions& options) {
  const bool selects = chunk.history() > settings.budget;
  std::vector<Matrix> unit_caches;  // per KV head, as an engine has them when the chunk arrives
  for (const GroupView& group : chunk.groups) {
    if (selects) {
      unit_caches.push_back(unit_rows(group.k).rows);
    }
  }
  Measured measured;
  for (int round = -options.warm_ups; round < options.repetitions; ++round) {
    LapClock clock;
    for (const GroupView& group : chunk.groups) {
      static_cast<void>(blocked_attention(group, chunk.rules, chunk.rows()));
    }
    const double dense = clock.lap();
    std::array<double, stage_names.size()> seconds{};
    run_stages(chunk, settings, unit_caches, seconds);
    if (round < 0) {
      continue;
    }
    double shared = 0;  // by both ways of having unit keys
    for (const Stage stage : {keep_queries, top_k, gather, attend}) {
      shared += seconds[stage];
    }
    measured.dense.push_back(dense);
    measured.cached.push_back(selects ? shared + seconds[unit_keys] + seconds[score] : dense);
    measured.recomputed.push_back(selects ? shared + seconds[recompute] : dense);
    for (std::size_t stage = 0; selects && stage < seconds.size(); ++stage) {
      measured.stages[stage].push_back(seconds[stage]);
    }
  }
  return measured;
}

/// What the machine can do at best.
struct Machine {
  double product_rate = 0;           ///< operations per second of a product of size 1024
  double operations_per_second = 0;  ///< of multiply-adds on registers
  double bytes_per_second = 0;       ///< read from memory
};

Machine measure_machine(const BenchOptions& options) {
  ProductYardstick yardstick;
  const auto samples =
      measure_in_turn({[&yardstick] { yardstick.run(); }}, options.warm_ups, options.repetitions);
  return {ProductYardstick::operations / median(samples.front()),
          peak_rate(options.warm_ups, options.repetitions),
          read_rate(options.warm_ups, options.repetitions)};
}

/// Operations and bytes that each stage cannot do without.
struct Work {
  std::array<double, stage_names.size()> operations{};
  std::array<double, stage_names.size()> bytes{};
  double dense_operations = 0;

  /// Largest possible speedup if only the operations of scores and attention took time.
  [[nodiscard]] double speedup_bound() const {
    return dense_operations / (operations[score] + operations[attend]);
  }
};

/// A chunk's own keys count whole for every row, as they are computed.
Work work_of(const AttentionShape& shape, Index history, Index chunk_size,
             const PrefillSettings& settings) {
  const auto number = [](Index n) { return static_cast<double>(n); };
  const double key_bytes = sizeof(float) * number(shape.n_kv_heads * shape.k_head_dim);
  const double value_bytes = sizeof(float) * number(shape.n_kv_heads * shape.v_head_dim);
  const double n_slots = number(std::min(settings.n_sel_queries, chunk_size));
  Work work;
  work.bytes[keep_queries] =
      sizeof(float) * number(shape.n_q_heads * chunk_size * shape.k_head_dim);
  work.bytes[unit_keys] = 2 * number(chunk_size) * key_bytes;  // read, and written
  work.operations[score] =
      2 * n_slots * number(history) * number(shape.n_kv_heads * shape.k_head_dim);
  work.bytes[score] = number(history) * key_bytes;
  work.operations[recompute] = work.operations[score];  // and three per number, in float64
  work.bytes[recompute] = work.bytes[score];
  work.bytes[top_k] = sizeof(float) * number(history * shape.n_kv_heads);
  work.bytes[gather] = 2 * number(settings.budget) * (key_bytes + value_bytes);
  work.operations[attend] =
      attention_operations(shape, number(chunk_size), number(settings.budget + chunk_size));
  work.dense_operations =
      attention_operations(shape, number(chunk_size), number(history + chunk_size));
  return work;
}

void report_stages(Report& report, const Measured& measured, const Work& work,
                   const Machine& machine) {
  double total = 0;
  for (const Stage stage : {keep_queries, unit_keys, score, top_k, gather, attend}) {
    total += measured.stages[stage].empty() ? 0 : median(measured.stages[stage]);
  }
  for (std::size_t stage = 0; stage < stage_names.size(); ++stage) {
    const std::string name(stage_names[stage]);
    const std::string meaning(stage_meanings[stage]);
    const Samples& samples = measured.stages[stage];
    if (samples.empty()) {
      continue;
    }
    report.set_times(name, meaning, samples);
    if (stage != recompute) {
      report.set({name + "_share", "1", "share of the stages with kept unit keys: " + meaning},
                 median(samples) / total, Shown::in_file);
    }
    report.set({name + "_bound", "ms",
                "least time by the measured peak rate and memory read rate: " + meaning},
               1e3 * std::max(work.operations[stage] / machine.operations_per_second,
                              work.bytes[stage] / machine.bytes_per_second),
               Shown::in_file);
  }
}

/// Seconds of the chunk behind any history, on straight lines between those measured.
double interpolated(const std::map<Index, double>& seconds, Index history) {
  const auto above = seconds.lower_bound(history);
  if (above == seconds.end()) {
    return seconds.rbegin()->second;
  }
  if (above->first == history || above == seconds.begin()) {
    return above->second;
  }
  const auto below = std::prev(above);
  const double share = static_cast<double>(history - below->first) /
                       static_cast<double>(above->first - below->first);
  return below->second + share * (above->second - below->second);
}

/// Seconds by history, to sum over the chunks of a prompt; those of sparse prefill above the
/// budget.
struct Curves {
  std::map<Index, double> dense;
  std::map<Index, double> cached;
  std::map<Index, double> recomputed;

  /// How many times faster than dense the chunks up to this history are together: those with a
  /// history within the budget are dense either way.
  [[nodiscard]] double prompt_speedup(const std::map<Index, double>& sparse, Index last_history,
                                      const BenchOptions& options) const {
    double dense_sum = 0;
    double sparse_sum = 0;
    for (Index history = 0; history <= last_history; history += options.chunk_size) {
      const double seconds = interpolated(dense, history);
      dense_sum += seconds;
      sparse_sum += history > options.budget ? interpolated(sparse, history) : seconds;
    }
    return dense_sum / sparse_sum;
  }
};

/// Smallest measured history from which on every longer one is faster than dense; NaN if none.
double wins_from(const Curves& curves) {
  double history = std::numeric_limits<double>::quiet_NaN();
  for (auto at = curves.cached.rbegin(); at != curves.cached.rend(); ++at) {
    if (at->second >= curves.dense.at(at->first)) {
      break;
    }
    history = static_cast<double>(at->first);
  }
  return history;
}

}  // namespace

Report bench_prefill(const BenchOptions& options) {
  std::vector<Index> histories = options.histories;
  histories.push_back(0);  // whole prompts begin there
  std::ranges::sort(histories);
  histories.erase(std::unique(histories.begin(), histories.end()), histories.end());
  const BenchLayer layer =
      options.capture.empty()
          ? BenchLayer(options, options.head_dims.front(), histories.back() + options.chunk_size)
          : BenchLayer(options);
  const PrefillSettings settings{options.budget, options.n_sel_queries};
  check_prefill_rules(layer.chunk(histories.back(), options.chunk_size).rules);
  const Machine machine = measure_machine(options);

  Report report("prefill");
  const AttentionShape& shape = layer.shape();
  report.set_setting("layer", layer.source());
  report.set_setting("heads", fmt::format("{}:{}, head_dim {}", shape.n_q_heads, shape.n_kv_heads,
                                          shape.k_head_dim));
  report.set_setting("selection",
                     fmt::format("chunk_size {}, budget {}, n_sel_queries {}", options.chunk_size,
                                 options.budget, options.n_sel_queries));
  Curves curves;
  for (const Index history : histories) {
    const Measured measured = measure(layer.chunk(history, options.chunk_size), settings, options);
    curves.dense[history] = median(measured.dense);
    if (history > options.budget) {
      curves.cached[history] = median(measured.cached);
      curves.recomputed[history] = median(measured.recomputed);
    }
    const Work work = work_of(shape, history, options.chunk_size, settings);
    report.begin_case(fmt::format("history {}", history));
    report.set({"history", "1", "keys before the chunk"}, static_cast<double>(history));
    report.set_times("dense", "dense attention", measured.dense);
    report_stages(report, measured, work, machine);
    report.set_times("cached", "sparse prefill with unit keys kept from earlier chunks",
                     measured.cached);
    report.set_times("recomputed", "sparse prefill with unit keys made again", measured.recomputed);
    report.set({"speedup", "1", "dense over cached, median over repetitions"},
               median_ratio(measured.dense, measured.cached));
    report.set({"speedup_recomputed", "1", "dense over recomputed, median over repetitions"},
               median_ratio(measured.dense, measured.recomputed));
    report.set({"bound", "1", "largest speedup by operations of scores and attention"},
               history > options.budget ? work.speedup_bound() : 1.0);
    report.set({"prompt_speedup", "1", "dense over cached, whole prompt up to this chunk"},
               curves.prompt_speedup(curves.cached, history, options));
    report.set(
        {"prompt_speedup_recomputed", "1", "dense over recomputed, whole prompt up to this chunk"},
        curves.prompt_speedup(curves.recomputed, history, options), Shown::in_file);
  }
  report.set_fact({"wins_from", "1",
                   "shortest measured history from which on sparse prefill with kept unit keys is "
                   "faster than dense"},
                  wins_from(curves));
  report.set_fact({"product_rate", "GFLOP/s", "of a float32 product of size 1024"},
                  machine.product_rate / 1e9);
  report.set_fact({"peak_rate", "GFLOP/s", "of multiply-adds on registers"},
                  machine.operations_per_second / 1e9);
  report.set_fact({"read_rate", "GB/s", "of memory"}, machine.bytes_per_second / 1e9);
  return report;
}

}  // namespace quoka::apps
