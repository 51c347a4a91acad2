#include "quoka/prefill/key_scores.hpp"

#include "quoka/geometry/unit_rows.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"
#include "support/tiny_layer.hpp"

using namespace quoka;
using quoka::test::near;

namespace {

Vector largest_cosines(const Matrix& slots, const Matrix& keys) {
  MatrixD unit = keys.cast<double>();
  for (Index key = 0; key < unit.rows(); ++key) {
    unit.row(key).normalize();  // leaves a zero row as it is
  }
  return (unit * slots.cast<double>().transpose()).rowwise().maxCoeff().cast<float>();
}

}  // namespace

TEST_CASE("scores are the largest cosine with any slot for every number of slots and keys",
          "[prefill][key_scores]") {
  test::NumberStream numbers(31);
  const Index n_keys = GENERATE(1, 15, 16, 17, 83);
  const Index n_slots = GENERATE(1, 7, 16, 19, 33);
  Matrix keys = numbers.matrix(n_keys, 13);
  keys.row(n_keys / 2).setZero();
  const Matrix slots = numbers.matrix(n_slots, 13);

  const Vector scores = best_cosines(view(keys), slots);
  // Sums of 13 float32 terms below 1.
  const auto report = near(scores, largest_cosines(slots, keys), 0, 1e-6);
  INFO(report.message);
  CHECK(report.ok());
  CHECK(scores[n_keys / 2] == 0.0F);
  CHECK(scores == best_products(view(unit_rows(view(keys)).rows), slots));
}

TEST_CASE("no key has no scores", "[prefill][key_scores]") {
  const Matrix slots = Matrix::Ones(3, 5);

  CHECK(best_products(view(Matrix(0, 5)), slots).size() == 0);
  CHECK(best_cosines(view(Matrix(0, 5)), slots).size() == 0);
}
