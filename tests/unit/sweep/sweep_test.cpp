#include "quoka/sweep/sweep.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>

#include "quoka/core/error.hpp"
#include "quoka/metrics/columns.hpp"
#include "quoka/results/reader.hpp"
#include "quoka/results/writer.hpp"
#include "quoka/sweep/layer_input.hpp"
#include "quoka/sweep/merge.hpp"
#include "support/catch.hpp"
#include "support/raw_hdf5.hpp"
#include "support/temp_dir.hpp"
#include "unit/sweep/small_sweep.hpp"

using namespace quoka;
using quoka::test::setting;

namespace {

struct Fixture {
  test::TempDir folder;
  std::filesystem::path capture = folder / "small.h5";
  std::filesystem::path out = folder / "o.h5";

  Fixture() { test::write_small_capture(capture); }
  [[nodiscard]] SweepConfig config(const std::vector<Setting>& more = {}) const {
    return test::small_config(capture, out, more);
  }
};

/// Equal values, NaN equal to NaN.
bool same(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(
      a, b, [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

}  // namespace

TEST_CASE("a sweep stores what the replay of each layer says", "[sweep][sweep]") {
  const Fixture fixture;
  const SweepOutcome outcome = run_sweep(fixture.config(), {});
  REQUIRE(outcome.results);
  CHECK(outcome.failed.empty());
  CHECK_FALSE(outcome.was_complete);
  const Results results = read_results(fixture.out);
  const SweepPlan plan = make_plan(fixture.config());
  const CaptureReader reader(fixture.capture);
  for (Index layer = 0; layer < 2; ++layer) {
    const auto cells =
        replay_layer(layer_input(reader, layer), plan.configs, plan.replay_settings(1));
    for (Index config = 0; config < 4; ++config) {
      const Matrix& expected = cells[static_cast<std::size_t>(config)].values;
      for (Index c = 0; c < expected.cols(); ++c) {
        for (Index head = 0; head < 4; ++head) {
          const float value = results.value(c, {config, 0, layer}, head);
          INFO(cell_columns()[static_cast<std::size_t>(c)].name << ' ' << config << ' ' << head);
          CHECK(
              (value == expected(head, c) || (std::isnan(value) && std::isnan(expected(head, c)))));
        }
      }
    }
  }
  CHECK(results.provenance.units_done == 2);
  CHECK(results.provenance.plan_hash == plan.hash);
  CHECK(make_sweep_config(parse_settings(results.provenance.config_text, "stored")) ==
        fixture.config());
}

TEST_CASE("by chunk and selections hold the details of the replay", "[sweep][sweep]") {
  const Fixture fixture;
  const auto config =
      fixture.config({setting("by_chunk", {"true"}), setting("selections", {"true"}),
                      setting("chunk_size", {"32", "16"})});
  const SweepOutcome outcome = run_sweep(config, {});
  REQUIRE(outcome.results);
  REQUIRE(outcome.results->by_chunk);
  REQUIRE(outcome.results->selections);
  const ChunkTable& chunks = *outcome.results->by_chunk;
  CHECK(chunks.n_chunks == 6);  // 96 tokens in chunks of 16
  const SweepPlan plan = make_plan(config);
  const CaptureReader reader(fixture.capture);
  const auto cells = replay_layer(layer_input(reader, 1), plan.configs, plan.replay_settings(1));
  const ResultsAxes& axes = outcome.results->axes;
  std::size_t n_selections = 0;
  for (Index config_at = 0; config_at < axes.n_configs(); ++config_at) {
    const CellResult& cell = cells[static_cast<std::size_t>(config_at)];
    const Index row = config_at * 2 + 1;  // [config, capture, layer] with layer 1
    for (Index chunk = 0; chunk < 6; ++chunk) {
      const auto at = static_cast<std::size_t>(row * 6 + chunk);
      const bool exists = chunk < std::ssize(cell.chunks);
      CHECK(std::isnan(chunks.begins[at]) == !exists);
      for (Index head = 0; head < 4 && exists; ++head) {
        CHECK(chunks.begins[at] ==
              static_cast<double>(cell.chunks[static_cast<std::size_t>(chunk)].begin));
        const Index state = std::ssize(chunk_columns()) - 1;
        const Index place = (state * axes.n_values() + row * 4 + head) * 6 + chunk;
        CHECK(chunks.values[static_cast<std::size_t>(place)] ==
              cell.chunk_values[static_cast<std::size_t>(chunk)](head, state));
      }
    }
    n_selections += cell.kept.size();
  }
  const SelectionTable& kept = *outcome.results->selections;
  CHECK(std::ranges::count(kept.layer_idx, 1) == static_cast<std::ptrdiff_t>(n_selections));
  CHECK(kept.offset.back() + kept.count.back() == std::ssize(kept.key_indices));
  const KeptKeys& last = cells.back().kept.back();
  const std::vector<std::int32_t> keys(kept.key_indices.begin() + kept.offset.back(),
                                       kept.key_indices.end());
  CHECK(keys == last.key_indices);
  CHECK(kept.kv_head.back() == last.kv_head);
  CHECK(kept.chunk_begin.back() == last.chunk_begin);
}

TEST_CASE("a complete output is reported and kept", "[sweep][sweep]") {
  const Fixture fixture;
  const SweepOutcome first = run_sweep(fixture.config(), {});
  const auto time = std::filesystem::last_write_time(fixture.out);
  const SweepOutcome again = run_sweep(fixture.config(), {});
  CHECK(again.was_complete);
  CHECK(std::filesystem::last_write_time(fixture.out) == time);
  CHECK(same(again.results->values, first.results->values));
}

TEST_CASE("an extended sweep equals one from scratch", "[sweep][sweep]") {
  const Fixture fixture;
  run_sweep(fixture.config({setting("budget", {"8"}), setting("layer", {"1"})}), {});
  const SweepOutcome extended = run_sweep(fixture.config(), {});
  std::filesystem::remove(fixture.out);
  const SweepOutcome fresh = run_sweep(fixture.config(), {});
  CHECK(extended.results->axes == fresh.results->axes);
  CHECK(same(extended.results->values, fresh.results->values));
}

TEST_CASE("an interrupted sweep throws and leaves no output", "[sweep][sweep]") {
  const Fixture fixture;
  const std::atomic<bool> stop{true};
  SweepOptions options;
  options.runner.stop = &stop;
  CHECK_THROWS_AS(run_sweep(fixture.config(), options), Interrupted);
  CHECK_FALSE(std::filesystem::exists(fixture.out));
  CHECK(run_sweep(fixture.config(), {}).failed.empty());
}

TEST_CASE("nothing is written when a capture or a layer is wrong", "[sweep][sweep]") {
  const Fixture fixture;
  CHECK_THROWS_AS(run_sweep(fixture.config({setting("layer", {"5"})}), {}), ConfigError);
  CHECK_THROWS_AS(run_sweep(fixture.config({setting("capture", {"none.h5"})}), {}), FormatError);
  CHECK_THROWS_AS(dry_run(fixture.config({setting("layer", {"5"})}), {}), ConfigError);
  dry_run(fixture.config(), {});
  CHECK(std::distance(std::filesystem::directory_iterator(fixture.folder.path()),
                      std::filesystem::directory_iterator()) == 1);  // the capture
}

TEST_CASE("an output of another sweep is refused with the difference", "[sweep][existing]") {
  const Fixture fixture;
  run_sweep(fixture.config(), {});
  const auto refused = [&](const Setting& more, const std::string& part) {
    CHECK_THROWS_AS(run_sweep(fixture.config({more}), {}), ConfigError);
    CHECK_THROWS_WITH(run_sweep(fixture.config({more}), {}),
                      test::contains(part) && test::contains("--overwrite"));
  };
  refused(setting("sink_size", {"3"}), "sink_size is 4, here it is 3");
  refused(setting("min_history", {"3"}), "min_history is 0");
  refused(setting("budget", {"4"}), "is not in this grid");
  refused(setting("layer", {"0"}), "layer 1 of capture small");
  test::write_small_capture(fixture.capture, 2, 5);
  CHECK_THROWS_WITH(run_sweep(fixture.config(), {}), test::contains("its content has changed"));
  SweepOptions overwrite;
  overwrite.overwrite = true;
  CHECK(run_sweep(fixture.config(), overwrite).failed.empty());
  CHECK(read_results(fixture.out).axes.captures[0].sha256 ==
        make_plan(fixture.config()).captures[0].sha256);
}

TEST_CASE("failed cells of an output are known and not missing", "[sweep][existing]") {
  const Fixture fixture;
  run_sweep(fixture.config(), {});
  const SweepPlan plan = make_plan(fixture.config());
  // As if layer 1 had failed: no values, and an entry in the provenance.
  Results results = read_results(fixture.out);
  for (Index config = 0; config < 4; ++config) {
    for (float& value : results.heads(cell_column(CellCount::n_rows), {config, 0, 1})) {
      value = std::nanf("");
    }
  }
  results.provenance.failed = {{"small", 1, "for a test"}};
  std::ofstream(fixture.out, std::ios::binary) << results_image(results);
  const auto existing = read_output(fixture.out, plan);
  REQUIRE(existing);
  CHECK(existing->cells.size() == 4);
  CHECK(existing->failures.size() == 4);
  const SweepOutcome again = run_sweep(fixture.config(), {});
  CHECK(again.was_complete);
  CHECK(again.failed == results.provenance.failed);
  SweepOptions retry;
  retry.retry_failed = true;
  const SweepOutcome repaired = run_sweep(fixture.config(), retry);
  CHECK(repaired.failed.empty());
  CHECK_FALSE(repaired.was_complete);
  CHECK(repaired.results->has_cell({3, 0, 1}));
}

TEST_CASE("a new output file has nothing to reuse", "[sweep][existing]") {
  const Fixture fixture;
  CHECK_FALSE(read_output(fixture.out, make_plan(fixture.config())));
}

TEST_CASE("durations read like a clock", "[sweep][progress]") {
  CHECK(duration_text(0) == "0:00");
  CHECK(duration_text(6.2) == "0:07");
  CHECK(duration_text(754) == "12:34");
  CHECK(duration_text(7384) == "2:03:04");
}
