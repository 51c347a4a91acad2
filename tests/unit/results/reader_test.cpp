#include "quoka/results/reader.hpp"

#include <cmath>
#include <fstream>

#include "quoka/core/error.hpp"
#include "quoka/results/writer.hpp"
#include "support/catch.hpp"
#include "support/raw_hdf5.hpp"
#include "support/temp_dir.hpp"
#include "unit/results/small_results.hpp"

using namespace quoka;

namespace {

void write_file(const std::filesystem::path& path, const Results& results) {
  std::ofstream(path, std::ios::binary) << results_image(results);
}

}  // namespace

TEST_CASE("a results file reads back as it was", "[results][reader]") {
  const test::TempDir folder;
  Results results = test::small_results();
  results.provenance.threads = 3;
  write_file(folder / "r.h5", results);
  const Results back = read_results(folder / "r.h5");
  CHECK(back.constants == results.constants);
  CHECK(back.axes == results.axes);
  CHECK(back.provenance.config_text == results.provenance.config_text);
  CHECK(back.provenance.threads == 3);
  CHECK(back.provenance.units_total == 3);
  CHECK(back.provenance.units_done == 2);
  CHECK(back.provenance.failed == results.provenance.failed);
  const Index sink_mass = cell_column(CellCount::sink_mass);
  for (Index c = 0; c < std::ssize(cell_columns()); ++c) {
    if (c == sink_mass) {
      continue;  // has no configuration, see the next case
    }
    const auto expected = results.column(c);
    const auto actual = back.column(c);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      CHECK((actual[i] == expected[i] || (std::isnan(actual[i]) && std::isnan(expected[i]))));
    }
  }
}

TEST_CASE("sink mass is repeated for every computed configuration", "[results][reader]") {
  const test::TempDir folder;
  write_file(folder / "r.h5", test::small_results());
  const Results back = read_results(folder / "r.h5");
  const Index column = cell_column(CellCount::sink_mass);
  const float value = test::small_value(column, {2, 0, 1}, 1);
  CHECK(std::isnan(back.value(column, {0, 0, 1}, 1)));  // failed
  CHECK(back.value(column, {1, 0, 1}, 1) == value);
  CHECK(back.value(column, {2, 0, 1}, 1) == value);
}

TEST_CASE("flags for details are read", "[results][reader]") {
  const test::TempDir folder;
  Results results = test::small_results();
  results.constants.selections = true;
  results.selections.emplace();
  write_file(folder / "r.h5", results);
  const Results back = read_results(folder / "r.h5");
  CHECK(back.constants.selections);
  CHECK_FALSE(back.constants.by_chunk);
}

TEST_CASE("files of another kind or version are refused", "[results][reader]") {
  const test::TempDir folder;
  const auto path = folder / "r.h5";
  CHECK_THROWS_AS(read_results(path), FormatError);
  std::ofstream(path) << "text";
  CHECK_THROWS_AS(read_results(path), FormatError);
  write_file(path, test::small_results());
  SECTION("format") {
    test::edit_hdf5(path, [](hid_t file) { test::set_text(file, "/", "format", "qkv-capture"); });
    CHECK_THROWS_WITH(read_results(path), test::contains("quoka-results"));
  }
  SECTION("format_version") {
    test::edit_hdf5(path, [](hid_t file) {
      test::set_attribute<std::int64_t>(file, "/", "format_version", 2);
    });
    CHECK_THROWS_WITH(read_results(path), test::contains("format_version 2 is not 1"));
  }
  SECTION("metric_version") {
    test::edit_hdf5(path, [](hid_t file) {
      test::set_attribute<std::int64_t>(file, "/", "metric_version", metric_version + 1);
    });
    CHECK_THROWS_WITH(read_results(path), test::contains("metric_version"));
  }
  SECTION("missing metric") {
    test::edit_hdf5(path, [](hid_t file) { H5Ldelete(file, "kl_mean", H5P_DEFAULT); });
    CHECK_THROWS_WITH(read_results(path), test::contains("kl_mean"));
  }
  SECTION("metric of another size") {
    test::edit_hdf5(path, [](hid_t file) {
      const float value = 1;
      test::set_dataset(file, "kl_mean", H5T_IEEE_F32LE, {1}, &value);
    });
    CHECK_THROWS_WITH(read_results(path), test::contains("kl_mean") && test::contains("36"));
  }
}
