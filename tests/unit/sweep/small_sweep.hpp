#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "quoka/capture/synthetic.hpp"
#include "quoka/sweep/config.hpp"

namespace quoka::test {

/// A synthetic capture with layers 0 to n_layers - 1, 4 query and 2 KV heads, 96 tokens.
inline void write_small_capture(const std::filesystem::path& path, Index n_layers = 2,
                                std::uint64_t seed = 0) {
  SyntheticOptions options;
  options.n_q_heads = 4;
  options.n_tokens = 96;
  options.k_head_dim = 8;
  options.v_head_dim = 8;
  options.n_layers = n_layers;
  options.seed = seed;
  write_synthetic_capture(path, options);
}

inline Setting setting(const std::string& key, const std::vector<std::string>& values) {
  Setting result{key, "--" + key, {}};
  for (const std::string& value : values) {
    result.values.push_back({value, result.origin, true});
  }
  return result;
}

/// Budgets 4 and 8 of quoka and oracle in chunks of 16: 4 configurations; further settings
/// override.
inline SweepConfig small_config(const std::filesystem::path& capture,
                                const std::filesystem::path& out,
                                const std::vector<Setting>& more = {}) {
  std::vector<Setting> settings{
      setting("capture", {capture.string()}), setting("out", {out.string()}),
      setting("chunk_size", {"16"}),          setting("budget", {"4", "8"}),
      setting("n_sel_queries", {"4"}),        setting("selector", {"quoka", "oracle"})};
  settings.insert(settings.end(), more.begin(), more.end());
  return make_sweep_config(settings);
}

}  // namespace quoka::test
