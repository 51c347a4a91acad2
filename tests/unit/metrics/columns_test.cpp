#include "quoka/metrics/columns.hpp"

#include <set>

#include "support/catch.hpp"

using namespace quoka;

TEST_CASE("every column has its own name and is found where it is stored", "[metrics][columns]") {
  std::set<std::string> names;
  for (const ColumnInfo& column : cell_columns()) {
    CHECK(names.insert(column.name).second);
    CHECK_FALSE(column.long_name.empty());
  }
  CHECK(find_cell_column("out_rel_l2_p99") ==
        cell_column(RowMetric::out_rel_l2, RowStatistic::p99));
  CHECK(find_cell_column("needle_mass_recall") == cell_column(ChunkMetric::needle_mass_recall));
  CHECK(find_cell_column("needle_mass_recall_n_valid") ==
        cell_column_n_valid(ChunkMetric::needle_mass_recall));
  CHECK(find_cell_column("floor_out_rel_l2") == cell_column(CellCount::floor_out_rel_l2));
  CHECK(find_cell_column("recall") == -1);
}

TEST_CASE("counts have no better direction and errors fall", "[metrics][columns]") {
  const auto direction = [](std::string_view name) {
    return cell_columns()[static_cast<std::size_t>(find_cell_column(name))].better;
  };
  CHECK(direction("out_rel_l2_mean") == Better::lower);
  CHECK(direction("out_cos_p01") == Better::higher);
  CHECK(direction("kl_n_valid") == Better::neither);
  CHECK(direction("oracle_ratio") == Better::higher);
}
