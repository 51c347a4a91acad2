#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "quoka/core/random.hpp"
#include "quoka/replay/replay.hpp"

namespace quoka::test {

/// Fixed stream of numbers: the same on every machine.
class NumberStream {
 public:
  explicit NumberStream(std::uint64_t seed) : seed_(seed) {}

  /// Uniform in [-1, 1), a multiple of 2^-23: exact in float32.
  float uniform() {
    const std::uint64_t bits = random_bits({.seed = seed_, .position = next_++});
    constexpr int kept_bits = 24;
    return static_cast<float>(bits >> (64 - kept_bits)) * 0x1p-23F - 1.0F;
  }

  Matrix matrix(Index rows, Index cols) {
    Matrix result(rows, cols);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        result(i, j) = uniform();
      }
    }
    return result;
  }

 private:
  std::uint64_t seed_;
  std::int64_t next_ = 0;
};

/// A layer in memory that tests may change at will before they replay it.
struct TinyLayer {
  AttentionShape shape;
  AttentionRules rules;
  Index layer_idx = 3;
  std::vector<NeedleGroup> needles;
  std::vector<Matrix> q;  ///< per query head [n_tokens, k_head_dim]
  std::vector<Matrix> k;  ///< per KV head [n_keys, k_head_dim]
  std::vector<Matrix> v;  ///< per KV head [n_keys, v_head_dim]

  [[nodiscard]] HeadGroup group(Index kv_head) const {
    const auto first = q.begin() + kv_head * shape.group_size();
    const auto i = static_cast<std::size_t>(kv_head);
    return {{first, first + shape.group_size()}, k[i], v[i]};
  }

  [[nodiscard]] LayerInput input() const {
    LayerInput result;
    result.shape = shape;
    result.rules = rules;
    result.layer_idx = layer_idx;
    result.needles = needles;
    result.load_group = [copy = std::make_shared<TinyLayer>(*this)](Index kv_head) {
      return copy->group(kv_head);
    };
    return result;
  }
};

/// Sizes of a test layer; the number of keys is q_offset + n_tokens.
struct TinyShape {
  Index n_q_heads = 6;
  Index n_kv_heads = 2;
  Index n_tokens = 53;
  Index k_head_dim = 8;
  Index v_head_dim = 5;
  Index q_offset = 0;
};

/// Random vectors around one common direction per tensor (as in real layers), scale 1/sqrt(Dk).
///
/// Queries are a few times longer than keys, so that a few keys hold most of a row's attention.
inline TinyLayer tiny_layer(const TinyShape& tiny, std::uint64_t seed) {
  TinyLayer layer;
  const Index n_keys = tiny.q_offset + tiny.n_tokens;
  layer.shape = {tiny.n_q_heads, tiny.n_kv_heads, tiny.n_tokens,
                 n_keys,         tiny.k_head_dim, tiny.v_head_dim};
  layer.rules.scale = 1.0 / std::sqrt(static_cast<double>(tiny.k_head_dim));
  layer.rules.q_offset = tiny.q_offset;
  NumberStream numbers(seed);
  constexpr float query_length = 4.0F;
  constexpr float offset = 0.25F;
  for (Index head = 0; head < tiny.n_q_heads; ++head) {
    Matrix q = numbers.matrix(tiny.n_tokens, tiny.k_head_dim);
    q.col(0).array() += offset;
    layer.q.push_back(query_length * q);
  }
  for (Index head = 0; head < tiny.n_kv_heads; ++head) {
    Matrix k = numbers.matrix(n_keys, tiny.k_head_dim);
    k.col(0).array() -= offset;
    layer.k.push_back(k);
    layer.v.push_back(numbers.matrix(n_keys, tiny.v_head_dim));
  }
  return layer;
}

}  // namespace quoka::test
