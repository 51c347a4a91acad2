#include "quoka/attention/key_products.hpp"

#include <cmath>

#include "quoka/attention/softmax.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"

using namespace quoka;
using quoka::test::near;

namespace {

Matrix waves(Index rows, Index cols, double phase) {
  Matrix m(rows, cols);
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < cols; ++j) {
      m(i, j) = static_cast<float>(std::sin(phase + 1.7 * static_cast<double>(i * cols + j)));
    }
  }
  return m;
}

}  // namespace

TEST_CASE("P22 identical keys get identical products and probabilities wherever they stand",
          "[attention][products]") {
  const Index n_queries = GENERATE(1, 2, 5, 16, 128);
  const Index n_keys = GENERATE(1, 7, 48, 49, 95, 200, 1023);
  const Matrix queries = waves(n_queries, 64, 0.3);
  const Matrix keys = waves(1, 64, 1.1).replicate(n_keys, 1);
  Matrix products(n_queries, n_keys);

  key_products(queries, view(keys), products);
  for (Index i = 0; i < n_queries; ++i) {
    CHECK((products.row(i).array() == products(i, 0)).all());
    to_probs({}, products.row(i));
    CHECK((products.row(i).array() == products(i, 0)).all());
  }
}

TEST_CASE("products equal those of a plain double loop", "[attention][products]") {
  const Matrix queries = waves(3, 20, 0.3);
  const Matrix keys = waves(101, 20, 2.0);
  Matrix products(3, 101);

  key_products(queries, view(keys), products);
  const MatrixD expected = queries.cast<double>() * keys.cast<double>().transpose();
  // 20 additions, each rounded to 2^-24 of a partial sum of at most 20.
  const auto report = near(products, expected, 0, 20 * 20 * 6e-8);
  INFO(report.message);
  CHECK(report.ok());
}
