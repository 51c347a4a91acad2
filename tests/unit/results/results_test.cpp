#include "quoka/results/results.hpp"

#include <cmath>

#include "support/catch.hpp"
#include "unit/results/small_results.hpp"

using namespace quoka;

TEST_CASE("results without cells are NaN everywhere", "[results][results]") {
  const Results results = empty_results({}, test::small_axes());
  CHECK(std::ssize(results.values) == std::ssize(cell_columns()) * 3 * 2 * 2 * 3);
  for (const float value : results.values) {
    CHECK(std::isnan(value));
  }
  CHECK_FALSE(results.has_cell({0, 0, 0}));
}

TEST_CASE("a value is found where it was put", "[results][results]") {
  Results results = empty_results({}, test::small_axes());
  const Index column = cell_column(CellCount::n_rows);
  results.heads(column, {2, 1, 0})[1] = 5;
  CHECK(results.value(column, {2, 1, 0}, 1) == 5);
  // C order over config (3), capture (2), layer (2), q_head (3): ((2 * 2 + 1) * 2 + 0) * 3 + 1
  CHECK(results.column(column)[31] == 5);
  CHECK(std::isnan(results.column(column)[30]));
}

TEST_CASE("a cell is there if its n_rows is a number", "[results][results]") {
  Results results = empty_results({}, test::small_axes());
  results.heads(cell_column(CellCount::n_rows_active), {1, 0, 1})[0] = 5;
  CHECK_FALSE(results.has_cell({1, 0, 1}));
  results.heads(cell_column(CellCount::n_rows), {1, 0, 1})[0] = 5;
  CHECK(results.has_cell({1, 0, 1}));
}

TEST_CASE("provenance knows the program and the machine", "[results][provenance]") {
  const Provenance here = local_provenance();
  CHECK(here.version.find('.') != std::string::npos);
  CHECK_FALSE(here.compiler.empty());
  CHECK_FALSE(here.packages.empty());
  CHECK(here.host == host_name());
  CHECK(here.created_utc.size() == std::string("2026-01-31T12:00:00Z").size());
  CHECK(here.created_utc.back() == 'Z');
}
