#include "quoka/sweep/part.hpp"

#include <cmath>
#include <fstream>
#include <sstream>

#include "quoka/core/error.hpp"
#include "quoka/metrics/columns.hpp"
#include "quoka/sweep/part_store.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using namespace quoka;

namespace {

CellResult cell(float offset, Index n_chunks) {
  CellResult result;
  result.values = Matrix::Constant(3, std::ssize(cell_columns()), offset);
  result.values(1, 2) = offset + 1;
  result.values(2, 0) = std::nanf("");
  for (Index i = 0; i < n_chunks; ++i) {
    result.chunks.push_back({10 * i, 10 * i + 7});
    result.chunk_values.push_back(
        Matrix::Constant(3, std::ssize(chunk_columns()), offset + static_cast<float>(i)));
    result.kept.push_back({10 * i, i % 2, {}, offset, 0.5F});
    result.kept.back().key_indices.assign(static_cast<std::size_t>(i), 4);
  }
  return result;
}

Part small_part() {
  return {
      "abcdef", "hash", "then", "now", {"id1", "id2", "id3"}, {cell(0, 0), cell(1, 3), cell(2, 1)}};
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("a part reads back as it was", "[sweep][part]") {
  const test::TempDir folder;
  const Part part = small_part();
  write_bytes(folder / "p.h5", encode_part(part));
  CHECK(read_part_ids(folder / "p.h5") == part.cell_ids);
  const Part back = read_part(folder / "p.h5");
  CHECK(back.unit_id == "abcdef");
  CHECK(back.plan_hash == "hash");
  CHECK(back.finished_utc == "now");
  CHECK(back.cell_ids == part.cell_ids);
  REQUIRE(back.cells.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const CellResult& expected = part.cells[i];
    const CellResult& actual = back.cells[i];
    CHECK(actual.values(1, 2) == expected.values(1, 2));
    CHECK(std::isnan(actual.values(2, 0)));
    CHECK(actual.values.rows() == 3);
    CHECK(actual.chunks == expected.chunks);
    CHECK(actual.chunk_values == expected.chunk_values);
    REQUIRE(actual.kept.size() == expected.kept.size());
    for (std::size_t k = 0; k < actual.kept.size(); ++k) {
      CHECK(actual.kept[k].chunk_begin == expected.kept[k].chunk_begin);
      CHECK(actual.kept[k].kv_head == expected.kept[k].kv_head);
      CHECK(actual.kept[k].key_indices == expected.kept[k].key_indices);
      CHECK(actual.kept[k].cut_score == expected.kept[k].cut_score);
      CHECK(actual.kept[k].cut_margin == expected.kept[k].cut_margin);
    }
  }
}

TEST_CASE("every changed byte of a part is noticed", "[sweep][part]") {
  const test::TempDir folder;
  const std::string bytes = encode_part(small_part());
  for (std::size_t at = 0; at < bytes.size(); at += 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write_bytes(folder / "p.h5", damaged);
    CHECK_THROWS_AS(read_part_ids(folder / "p.h5"), FormatError);
  }
}

TEST_CASE("a part cut anywhere is noticed", "[sweep][part]") {
  const test::TempDir folder;
  const std::string bytes = encode_part(small_part());
  for (std::size_t size = 0; size < bytes.size(); size += 101) {
    write_bytes(folder / "p.h5", bytes.substr(0, size));
    CHECK_THROWS_AS(read_part(folder / "p.h5"), FormatError);
  }
}

TEST_CASE("a failure record reads back as it was", "[sweep][records]") {
  const FailureRecord failure{"u1", "capture", 7, "reason with \"quotes\"\nand a line", {"a", "b"}};
  CHECK(parse_failure(failure_json(failure)) == failure);
  CHECK_THROWS_AS(parse_failure("{}"), FormatError);
  CHECK_THROWS_AS(parse_failure("not json"), FormatError);
  CHECK_THROWS_AS(parse_failure(R"({"unit_id": 3})"), FormatError);
}

TEST_CASE("a store finds what it saved and forgets what was merged", "[sweep][store]") {
  const test::TempDir folder;
  const PartStore store(folder / "o.h5");
  CHECK(store.scan().cells.empty());
  SweepPlan plan;
  plan.hash = "h";
  store.prepare(plan);
  CHECK(std::filesystem::exists(folder / "o.h5.parts/plan.json"));
  const auto path = store.save(small_part());
  store.save(FailureRecord{"ffffff", "c", 1, "why", {"id9"}});
  CHECK(path == folder / "o.h5.parts/shards/ab/abcdef.h5");
  PartIndex index = store.scan();
  CHECK(index.cells.size() == 3);
  CHECK(index.cells.at("id2") == path);
  REQUIRE(index.failures.size() == 1);
  CHECK(index.failures[0].reason == "why");

  store.remove_merged({"id1", "id2"});  // id3 is not in the output yet
  CHECK(std::filesystem::exists(path));
  store.remove_merged({"id1", "id2", "id3"});
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(std::filesystem::exists(store.folder()));  // the failure is left
  store.remove_merged({"id9"});
  CHECK_FALSE(std::filesystem::exists(store.folder()));
}

TEST_CASE("a unit that succeeds forgets its failure", "[sweep][store]") {
  const test::TempDir folder;
  const PartStore store(folder / "o.h5");
  store.save(FailureRecord{"abcdef", "c", 1, "why", {"id1"}});
  store.save(small_part());
  CHECK(store.scan().failures.empty());
}

TEST_CASE("damaged files of a store are warnings", "[sweep][store]") {
  const test::TempDir folder;
  const PartStore store(folder / "o.h5");
  const auto path = store.save(small_part());
  write_bytes(path, "damaged");
  write_bytes(path.parent_path() / "abcdef.fail.json", "{");
  const PartIndex index = store.scan();
  CHECK(index.cells.empty());
  CHECK(index.failures.empty());
  REQUIRE(index.warnings.size() == 2);
  CHECK_THAT(index.warnings[0], test::contains("abcdef.fail.json"));
  CHECK_THAT(index.warnings[1], test::contains("checksum"));
}
