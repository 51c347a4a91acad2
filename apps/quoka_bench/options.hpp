#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quoka/core/matrix.hpp"

namespace quoka::apps {

/// What the user asked quoka-bench to do.
enum class BenchVerb {
  none,  ///< help or version was printed
  attention,
  prefill,
  sweep,
  memory,
  synthetic,
};

/// The command line of quoka-bench.
struct BenchOptions {
  BenchVerb verb = BenchVerb::none;

  // The layer: of a capture, or synthetic with these sizes.
  std::string capture;   ///< empty: synthetic
  Index layer_idx = -1;  ///< of the capture; -1: its first
  Index n_q_heads = 8;
  Index n_kv_heads = 2;
  std::vector<Index> head_dims = {128};
  std::uint64_t seed = 0;

  // The work.
  std::vector<Index> histories;  ///< keys before the chunk
  std::vector<Index> n_tokens;
  Index chunk_size = 128;
  Index budget = 1024;
  Index n_sel_queries = 16;
  bool large_grid = false;  ///< sweep: also 1000 configurations

  // How to measure.
  int repetitions = 9;
  int warm_ups = 2;
  int cpu = -1;  ///< to run on; -1: the first that the process may use
  int n_threads = 1;

  // Output.
  bool json = false;
  std::string out;     ///< HDF5 file of the measurements, or the capture of `synthetic`
  std::string folder;  ///< of the captures that `memory` writes and removes; empty: the system's
};

/// Reads the command line; prints help and version itself. Throws: ConfigError.
BenchOptions parse_bench_options(int argc, const char* const* argv);

}  // namespace quoka::apps
