#include "quoka/attention/sparse.hpp"

#include <cmath>
#include <numeric>

#include "quoka/attention/dense.hpp"
#include "quoka/attention/visibility.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"

using namespace quoka;
using quoka::test::near;

namespace {

struct Tensors {
  std::vector<Matrix> q;
  Matrix k;
  Matrix v;

  [[nodiscard]] GroupView group() const {
    GroupView result{.q = {}, .k = view(k), .v = view(v), .kv_head = 0};
    for (const Matrix& head : q) {
      result.q.push_back(view(head));
    }
    return result;
  }
};

/// Smooth numbers without pattern; Dk = 5, Dv = 3, two heads.
Tensors waves(Index n_tokens, Index n_keys) {
  const auto wave = [](Index rows, Index cols, double phase) {
    Matrix m(rows, cols);
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < cols; ++j) {
        m(i, j) = static_cast<float>(std::sin(phase + 1.7 * static_cast<double>(i * cols + j)));
      }
    }
    return m;
  };
  return {
      {wave(n_tokens, 5, 0.1), wave(n_tokens, 5, 0.7)}, wave(n_keys, 5, 1.3), wave(n_keys, 3, 2.1)};
}

const AttentionRules rules{.scale = 0.8,
                           .q_offset = 4,
                           .sliding_window = 6,
                           .softcap = 3.0,
                           .alibi = Alibi::plain,
                           .sinks = {0.3F, -0.2F},
                           .alibi_slopes = {0.1F, 0.05F}};

}  // namespace

TEST_CASE("attending every visible key is dense attention", "[attention][sparse]") {
  const Tensors tensors = waves(9, 13);
  const DenseChunk dense = dense_chunk(tensors.group(), rules, {0, 9});

  for (Index head = 0; head < 2; ++head) {
    for (Index row = 0; row < 9; ++row) {
      const IndexRange visible = visible_keys(rules, 4 + row);
      std::vector<std::int32_t> keys(static_cast<std::size_t>(visible.size()));
      std::iota(keys.begin(), keys.end(), static_cast<std::int32_t>(visible.begin));
      // Sums of at most 6 terms below 1 in float32, in another order.
      const auto report = near(sparse_row(tensors.group(), rules, head, row, keys),
                               dense.out.row(head * 9 + row), 0, 1e-6);
      INFO(report.message);
      CHECK(report.ok());
    }
  }
}

TEST_CASE("P18 rows of a later block equal the same rows of one pass", "[attention][dense]") {
  const Tensors tensors = waves(9, 13);
  const DenseChunk whole = dense_chunk(tensors.group(), rules, {0, 9});

  for (const Index begin : {1, 3, 8}) {
    const DenseChunk part = dense_chunk(tensors.group(), rules, {begin, 9});
    for (Index head = 0; head < 2; ++head) {
      const auto report = near(part.out.middleRows(head * (9 - begin), 9 - begin),
                               whole.out.middleRows(head * 9 + begin, 9 - begin), 0, 1e-6);
      INFO(report.message);
      CHECK(report.ok());
    }
  }
}

TEST_CASE("the float64 row agrees with the float32 one", "[attention][dense]") {
  const Tensors tensors = waves(9, 13);
  const DenseChunk dense = dense_chunk(tensors.group(), rules, {0, 9});

  for (Index row = 0; row < 9; ++row) {
    const VectorD exact = dense_row_float64(tensors.group(), rules, 1, row);
    const auto report = near(dense.out.row(9 + row), exact.transpose(), 0, 1e-6);
    INFO(report.message);
    CHECK(report.ok());
  }
}

TEST_CASE("keys far below the best of the row do not underflow", "[attention][sparse]") {
  Tensors tensors = waves(1, 5);
  tensors.k.setZero();
  tensors.k(4, 0) = 1000;  // the row's own key: a logit of hundreds
  tensors.q[0].setConstant(1);

  // The two kept keys have equal logits, so the output is the mean of their values.
  const auto out =
      sparse_row(tensors.group(), {.q_offset = 4}, 0, 0, std::vector<std::int32_t>{0, 2});
  const auto report = near(out, (tensors.v.row(0) + tensors.v.row(2)) / 2, 0, 1e-6);
  INFO(report.message);
  CHECK(report.ok());
}
