#include "quoka/prefill/unit_keys.hpp"

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"
#include "support/tiny_layer.hpp"

using namespace quoka;
using quoka::test::near;

namespace {

constexpr Index n_keys = 83;
constexpr Index head_dim = 13;

Vector largest_cosines(const Matrix& slots, const Matrix& keys) {
  MatrixD unit = keys.cast<double>();
  for (Index key = 0; key < unit.rows(); ++key) {
    unit.row(key).normalize();  // leaves a zero row as it is
  }
  return (unit * slots.cast<double>().transpose()).rowwise().maxCoeff().cast<float>();
}

}  // namespace

TEST_CASE("scores are the largest cosine with any slot for every number of slots",
          "[prefill][unit_keys]") {
  test::NumberStream numbers(31);
  Matrix keys = numbers.matrix(n_keys, head_dim);
  keys.row(40).setZero();
  UnitKeys unit_keys(n_keys, head_dim);
  unit_keys.append(view(keys));

  for (const Index n_slots : {1, 7, 8, 9, 16, 19}) {
    const Matrix slots = numbers.matrix(n_slots, head_dim);
    const Vector scores = unit_keys.best_scores(slots, n_keys - 2);
    // Sums of 13 float32 terms below 1.
    const auto report = near(scores, largest_cosines(slots, keys.topRows(n_keys - 2)), 0, 1e-6);
    INFO(report.message);
    CHECK(report.ok());
    CHECK(scores[40] == 0.0F);
  }
}

TEST_CASE("keys appended piece by piece and after a truncation score like keys appended at once",
          "[prefill][unit_keys]") {
  test::NumberStream numbers(32);
  const Matrix keys = numbers.matrix(n_keys, head_dim);
  const Matrix slots = numbers.matrix(4, head_dim);
  UnitKeys at_once(n_keys, head_dim);
  at_once.append(view(keys));
  UnitKeys pieces(n_keys, head_dim);
  pieces.append(row_view(view(keys), {0, 1}));
  pieces.append(row_view(view(keys), {1, 70}));
  pieces.truncate(33);
  pieces.append(row_view(view(keys), {33, n_keys}));

  CHECK(pieces.size() == n_keys);
  CHECK(pieces.best_scores(slots, n_keys) == at_once.best_scores(slots, n_keys));
}

TEST_CASE("more keys than there is room for are refused", "[prefill][unit_keys]") {
  const Matrix keys = Matrix::Ones(97, head_dim);
  UnitKeys unit_keys(96, head_dim);

  CHECK_THROWS_AS(unit_keys.append(view(keys)), ShapeError);
  CHECK_THROWS_AS(unit_keys.append(view(Matrix::Ones(1, head_dim + 1))), ShapeError);
}
