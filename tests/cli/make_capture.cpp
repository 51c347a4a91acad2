// Writes a small synthetic capture for the tests of the programs:
//   make_capture FILE N_LAYERS N_TOKENS [NAN_LAYER]
// With NAN_LAYER, one element of q of that layer (head 2, token 5) is not a number.

#include <cmath>
#include <cstdio>
#include <exception>
#include <string>

#include "quoka/capture/synthetic.hpp"
#include "quoka/capture/writer.hpp"

namespace {

using namespace quoka;

void write_capture(const std::string& path, const SyntheticOptions& options, Index nan_layer) {
  CaptureInfo info;
  info.model_id = "synthetic";
  info.num_hidden_layers = options.n_layers;
  CaptureTokens tokens;
  for (std::int32_t i = 0; i < options.n_tokens; ++i) {
    tokens.ids.push_back(i);
    tokens.positions.push_back(i);
  }
  CaptureWriter writer(path, info, tokens);
  for (Index layer_idx = 0; layer_idx < options.n_layers; ++layer_idx) {
    const CaptureLayer layer = synthetic_layer(options, layer_idx);
    writer.add_layer(layer);
    for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v}) {
      const IndexRange rows{0, n_rows(layer.shape, tensor)};
      for (Index head = 0; head < n_heads(layer.shape, tensor); ++head) {
        Matrix values = synthetic_rows(options, layer_idx, tensor, head, rows);
        if (layer_idx == nan_layer && tensor == Tensor::q && head == 2) {
          values(5, 1) = std::nanf("");
        }
        writer.write_rows(tensor, head, rows, values);
      }
    }
  }
  writer.write_annotations(synthetic_annotations(options));
  writer.commit();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    SyntheticOptions options;
    options.n_q_heads = 4;
    options.k_head_dim = 16;
    options.v_head_dim = 16;
    options.n_layers = std::stol(argv[2]);
    options.n_tokens = std::stol(argv[3]);
    write_capture(argv[1], options, argc > 4 ? std::stol(argv[4]) : -1);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_capture: %s\n", error.what());
    return 1;
  }
}
