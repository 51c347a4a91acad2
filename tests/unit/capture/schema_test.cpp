#include "quoka/capture/schema.hpp"

#include "support/catch.hpp"

namespace quoka {

TEST_CASE("the kind of a layer joins what holds", "[capture][schema]") {
  CaptureLayer layer;
  CHECK(layer_kind(layer) == "full");
  layer.position_kind = "nope";
  CHECK(layer_kind(layer) == "unrotated");
  layer.rules.sliding_window = 8;
  CHECK(layer_kind(layer) == "window+unrotated");
  layer.rules.attention_chunk = 8;
  layer.position_kind = "rope";
  CHECK(layer_kind(layer) == "window+attention_chunk");
}

TEST_CASE("each tensor has its heads rows and columns", "[capture][schema]") {
  const AttentionShape shape{6, 3, 5, 9, 4, 2};
  CHECK(n_heads(shape, Tensor::q) == 6);
  CHECK(n_heads(shape, Tensor::v) == 3);
  CHECK(n_rows(shape, Tensor::out) == 5);
  CHECK(n_rows(shape, Tensor::k) == 9);
  CHECK(n_columns(shape, Tensor::k) == 4);
  CHECK(n_columns(shape, Tensor::out) == 2);
}

}  // namespace quoka
