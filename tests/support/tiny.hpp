#pragma once

#include <filesystem>
#include <vector>

#include "quoka/capture/writer.hpp"

namespace quoka::test {

/// Layer 1 with 4 query and 2 KV heads, 5 queries at offset 2, 7 keys, head sizes 3 and 2, with
/// sinks, out and lse: no two sizes are equal, so that a swapped axis shows.
inline CaptureLayer tiny_layer(Index layer_idx = 1) {
  CaptureLayer layer;
  layer.layer_idx = layer_idx;
  layer.shape = {4, 2, 5, 7, 3, 2};
  layer.rules.scale = 0.5;
  layer.rules.q_offset = 2;
  layer.rules.sinks = {0.5F, -1.0F, 2.0F, 0.0F};
  layer.has_out = true;
  layer.has_lse = true;
  return layer;
}

/// The value that a tiny capture holds at a place: a multiple of 1/8 that every storage type holds
/// exactly.
inline float tiny_value(Tensor tensor, Index head, Index row, Index column) {
  const Index eighths = 40 * static_cast<Index>(tensor) + 20 * head % 60 + 3 * row + column - 100;
  return static_cast<float>(eighths) / 8;
}

inline Matrix tiny_rows(const CaptureLayer& layer, Tensor tensor, Index head) {
  Matrix values(n_rows(layer.shape, tensor), n_columns(layer.shape, tensor));
  for (Index row = 0; row < values.rows(); ++row) {
    for (Index column = 0; column < values.cols(); ++column) {
      values(row, column) = tiny_value(tensor, head, row, column);
    }
  }
  return values;
}

inline CaptureInfo tiny_info() {
  CaptureInfo info;
  info.model_id = "tiny";
  info.model_revision = "r1";
  info.num_hidden_layers = 4;
  info.config_json = "{}";
  return info;
}

inline CaptureTokens tiny_tokens() {
  return {{11, 12, 13, 14, 15, 16, 17}, {0, 1, 2, 3, 4, 5, 6}, {}};
}

inline std::vector<Annotation> tiny_annotations() {
  return {{{1, 3}, AnnotationKind::needle, 7, "city"}, {{5, 7}, AnnotationKind::question, 7, ""}};
}

/// Writes a valid capture; break it with raw_hdf5.hpp where a test needs a fault.
inline void write_tiny_capture(const std::filesystem::path& path,
                               const std::vector<CaptureLayer>& layers = {tiny_layer()}) {
  CaptureWriter writer(path, tiny_info(), tiny_tokens());
  for (const CaptureLayer& layer : layers) {
    writer.add_layer(layer);
    for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v, Tensor::out}) {
      const bool is_absent = (tensor == Tensor::v && layer.v_equals_k_prefix > 0) ||
                             (tensor == Tensor::out && !layer.has_out);
      for (Index head = 0; head < n_heads(layer.shape, tensor) && !is_absent; ++head) {
        writer.write_rows(tensor, head, {0, n_rows(layer.shape, tensor)},
                          tiny_rows(layer, tensor, head));
      }
    }
    for (Index head = 0; head < layer.shape.n_q_heads && layer.has_lse; ++head) {
      writer.write_lse(head, {0, layer.shape.n_tokens},
                       Vector::Constant(layer.shape.n_tokens, static_cast<float>(head)));
    }
  }
  writer.write_annotations(tiny_annotations());
  writer.commit();
}

}  // namespace quoka::test
