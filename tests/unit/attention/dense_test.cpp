#include "quoka/attention/dense.hpp"

#include "support/catch.hpp"

using namespace quoka;

TEST_CASE("P22 repeated keys have the same probability wherever they stand", "[attention][dense]") {
  // Odd sizes: the last keys and lanes do not fill a vector.
  const Index n_tokens = GENERATE(5, 49, 251);
  const Matrix q = Matrix::Random(n_tokens, 24);
  const Matrix k = Matrix::Random(1, 24).replicate(n_tokens, 1);
  const Matrix v = Matrix::Random(n_tokens, 24);
  const GroupView group{.q = {view(q), view(q)}, .k = view(k), .v = view(v), .kv_head = 0};
  const AttentionRules rules{.scale = 0.2, .softcap = GENERATE(0.0, 5.0)};

  const DenseChunk chunk = dense_chunk(group, rules, {n_tokens - 5, n_tokens});
  for (Index lane = 0; lane < chunk.n_lanes(); ++lane) {
    const Index query_pos = n_tokens - 5 + lane % 5;
    const auto visible = chunk.probs.col(lane).head(query_pos + 1).array();
    CAPTURE(lane);
    CHECK((visible == visible[0]).all());
  }
}

TEST_CASE("lanes of padding hold zeros", "[attention][dense]") {
  const Matrix tokens = Matrix::Random(7, 8);
  const GroupView group{.q = {view(tokens)}, .k = view(tokens), .v = view(tokens), .kv_head = 0};
  const DenseChunk chunk = dense_chunk(group, {}, {0, 7});
  REQUIRE(chunk.probs.cols() == padded_lanes(7));
  CHECK((chunk.probs.rightCols(chunk.probs.cols() - 7).array() == 0.0F).all());
}
