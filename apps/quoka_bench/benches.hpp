#pragma once

#include "quoka/core/attention_shape.hpp"
#include "quoka_bench/options.hpp"
#include "quoka_bench/report.hpp"

namespace quoka::apps {

/// Dense attention of a chunk, as a share of the rate of a float32 matrix product.
Report bench_attention(const BenchOptions& options);

/// Sparse prefill of a chunk by stage, with bounds, against dense attention; and of whole prompts.
Report bench_prefill(const BenchOptions& options);

/// The replay of a layer under grids of configurations, and what its parts cost.
Report bench_sweep(const BenchOptions& options);

/// Time and peak memory of the replay of synthetic captures, each in its own process.
Report bench_memory(const BenchOptions& options);

/// Operations of attention of n_rows of every query head to n_keys each.
double attention_operations(const AttentionShape& shape, double n_rows, double n_keys);

}  // namespace quoka::apps
