#include "quoka/geometry/mean_query.hpp"

#include <cmath>

#include "quoka/geometry/unit_rows.hpp"
#include "support/catch.hpp"

using namespace quoka;

TEST_CASE("the mean of raw rows follows the long rows", "[geometry][mean]") {
  Matrix rows(2, 2);
  rows << 4, 0,  //
      0, 3;

  // Mean (2, 1.5) has norm 2.5: cosines 2 / 2.5 and 1.5 / 2.5. Unit rows count alike: 1 / sqrt(2).
  const MeanSimilarity raw = similarity_to_mean(view(rows), MeanOf::raw_rows);
  CHECK(std::abs(raw.cosines[0] - 0.8) < 1e-15);
  CHECK(std::abs(raw.cosines[1] - 0.6) < 1e-15);
  const MeanSimilarity normalized = similarity_to_mean(view(rows), MeanOf::unit_rows);
  CHECK(std::abs(normalized.cosines[0] - std::sqrt(0.5)) < 1e-15);
  CHECK(std::abs(normalized.cosines[1] - std::sqrt(0.5)) < 1e-15);
}

TEST_CASE("a zero mean makes every similarity zero and is reported", "[geometry][mean]") {
  Matrix rows(2, 2);
  rows << 1, 2,  //
      -1, -2;

  const MeanSimilarity similarity = similarity_to_mean(view(rows), MeanOf::raw_rows);
  CHECK(similarity.zero_mean);
  CHECK(similarity.cosines.isZero(0));
}

TEST_CASE("a zero row stays zero and is counted", "[geometry][unit]") {
  Matrix rows(3, 2);
  rows << 0, 0,  //
      3, 4,      //
      0, -2;

  const UnitRows unit = unit_rows(view(rows));
  CHECK(unit.n_zero == 1);
  CHECK(unit.rows(0, 0) == 0.0F);
  CHECK(unit.rows(1, 0) == 0.6F);
  CHECK(unit.rows(1, 1) == 0.8F);
  CHECK(unit.rows(2, 1) == -1.0F);
  CHECK(unit.norms[1] == 5.0);
}

TEST_CASE("rows at both ends of the float32 range have unit length", "[geometry][unit]") {
  Matrix rows(2, 2);
  rows << 3e38F, 3e38F,  // its squared norm is beyond float32
      1e-42F, 0;         // subnormal: 1 / norm is beyond float32

  const UnitRows unit = unit_rows(view(rows));
  CHECK(std::abs(unit.rows(0, 0) - std::sqrt(0.5F)) < 1e-7F);
  CHECK(unit.rows(1, 0) == 1.0F);
}
