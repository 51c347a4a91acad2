#include "quoka/check/profile_json.hpp"

#include <fstream>
#include <limits>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/check/flat_results.hpp"

using namespace quoka;

namespace {

Profile small_profile() {
  Results results = test::flat_results(1);
  constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
  test::set_heads(results, "needle_key_recall", 0, 0, nan_value, nan_value);
  test::set_heads(results, "out_rel_l2_mean", 1, 0, 1.2345678e-7F, 1.2345678e-7F);
  return make_profile(results, {});
}

/// The text of small_profile() with the first `from` replaced.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = profile_json(small_profile());
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a profile reads back and gives the same text", "[check][json]") {
  const std::string text = profile_json(small_profile());
  const Profile read = parse_profile("p.json", text);
  CHECK(profile_json(read) == text);
  CHECK(read.rows.size() == small_profile().rows.size());
  CHECK(read.configs == small_profile().configs);
  CHECK(read.captures == small_profile().captures);
}

TEST_CASE("a profile is readable text with a row per line", "[check][json]") {
  const std::string text = profile_json(small_profile());
  CHECK_THAT(text, test::contains("\n  {\"group\":\"middle\",\"config\":\"aa\",\"metric\":"
                                  "\"mass_recall_no_sink_mean\",\"statistic\":\"mean\",\"better\":"
                                  "\"higher\",\"expected\":0.5,\"tolerance\":0.01,\"n_values\":2,"
                                  "\"n_undefined\":0},\n"));
  CHECK_THAT(text, test::contains("\"expected\":1.234568e-07,"));
}

TEST_CASE("P39 an undefined value is null with a reason", "[check][json]") {
  CHECK_THAT(profile_json(small_profile()),
             test::contains("\"expected\":null,\"reason\":\"no head has a value\""));
}

TEST_CASE("faults of a profile are refused with their place", "[check][json]") {
  const auto [from, to, message] = GENERATE(table<std::string, std::string, std::string>({
      {"{\n", "", "p.json is not valid JSON"},
      {"\"sink_size\": 4", "\"sink_size\": 4, \"sink_size\": 4", "p.json, sink_size: the key"},
      {"\"tolerance\":0.01", "\"tolerance\":0.01,\"tolerance\":1",
       "p.json, rows[0].tolerance: the key"},
      {"\"tolerance\":1e-05", "\"tolerance\":1,\"toler\\u0061nce\":1", "p.json, rows["},
      {"\"aa\": \"", "\"aa\": \"x\", \"aa\": \"", "p.json, configurations.aa: the key"},
      {"\"sink_size\": 4", "\"sink_size\": 4, \"extra\": 1", "p.json: key \"extra\" is not known"},
      {"\"sink_size\": 4,", "", "p.json: key \"sink_size\" is missing"},
      {"\"sink_size\": 4", "\"sink_size\": \"4\"", "p.json, sink_size: \"4\" where a whole number"},
      {"\"sink_size\": 4", "\"sink_size\": -4", "p.json, sink_size: -4 where a whole number"},
      {"\"sink_size\": 4", "\"sink_size\": 18446744073709551615", "p.json, sink_size: 1844674407"},
      {"\"sink_size\": 4", "\"sink_size\": 4.5", "p.json, sink_size: 4.5 where a whole number"},
      {"quoka-profile", "quoka-results", "is no profile"},
      {"\"format_version\": 1", "\"format_version\": 2", "p.json, format_version: 2 is not 1"},
      {"\"metric_version\": 1", "\"metric_version\": 2", "p.json, metric_version: 2 is not 1"},
      {"\"depth\"", "\"third\"", "p.json, layer_group: layer group \"third\""},
      {"\"model_id\":", "\"model\":", "p.json, captures[0]: key \"model\""},
      {"\"layers\":[0]", "\"layers\":[]", "p.json, captures[0].layers: the array is empty"},
      {"\"expected\":0.5", "\"expected\":\"0.5\"", "p.json, rows[0].expected: string"},
      {"\"expected\":0.5", "\"expected\":true", "p.json, rows[0].expected: boolean"},
      {"\"expected\":0.5", "\"expected\":null", "p.json, rows[0].expected: null and a \"reason\""},
      {"\"expected\":0.5", "\"expected\":1e999", "p.json is not valid JSON"},
      {"\"expected\":0.5", "\"expected\":NaN", "p.json is not valid JSON"},
      {"\"n_values\":2", "\"n_values\":0", "p.json, rows[0].expected: null and n_values 0"},
      {"\"tolerance\":0.01", "\"tolerance\":-1", "p.json, rows[0].tolerance: -1 is negative"},
      {"\"higher\"", "\"up\"", "p.json, rows[0].better: \"up\" is not one of"},
      {"\"statistic\":\"mean\"", "\"statistic\":\"p99\"", "p.json, rows[0].statistic: \"p99\""},
      {"mass_recall_no_sink_mean", "recall", "p.json, rows[0].metric: \"recall\""},
      {"\"config\":\"aa\"", "\"config\":\"cc\"", "p.json, rows[0].config: \"cc\""},
      {"mass_recall_no_sink_mean", "oracle_ratio", "p.json, rows[3]: group middle"},
      {"\"rows\": [", "\"rows\": [],\"x\": [", "key \"x\" is not known"},
  }));
  INFO(from << " -> " << to);
  const std::string text = edited(from, to);
  CHECK_THROWS_AS(parse_profile("p.json", text), FormatError);
  CHECK_THROWS_WITH(parse_profile("p.json", text), test::contains(message));
}

TEST_CASE("texts that are no profile are refused", "[check][json]") {
  using namespace std::string_literals;
  for (const std::string& text :
       {""s, std::string(100'000, '[') + std::string(100'000, ']'), "[]"s, "{}"s, "null"s,
        "\"quoka-profile\""s, profile_json(small_profile()) + "{}", "{}\0"s,
        profile_json(small_profile()).substr(0, 900)}) {
    INFO(text.substr(0, 40));
    CHECK_THROWS_AS(parse_profile("p.json", text), FormatError);
  }
}

TEST_CASE("a profile without rows is refused since its check would always pass", "[check][json]") {
  const std::string text = profile_json(small_profile());
  const std::size_t rows = text.find("\"rows\"");
  const std::string empty = text.substr(0, rows) + "\"rows\": []}";
  CHECK_THROWS_WITH(parse_profile("p.json", empty), test::contains("rows: the array is empty"));
}

TEST_CASE("a profile is read from its file", "[check][json]") {
  const test::TempDir folder;
  const auto path = folder / "p.json";
  std::ofstream(path) << profile_json(small_profile());
  CHECK(profile_json(read_profile(path)) == profile_json(small_profile()));
  CHECK_THROWS_AS(read_profile(folder / "none.json"), FormatError);
  CHECK_THROWS_AS(read_profile(folder.path()), FormatError);
}
