#include "quoka/results/export.hpp"

#include <algorithm>
#include <sstream>
#include <vector>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "unit/results/small_results.hpp"

using namespace quoka;

namespace {

std::vector<std::string> csv_lines(const Results& results,
                                   const std::vector<std::string>& columns) {
  std::stringstream text;
  write_csv(results, columns, text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

TEST_CASE("csv has one line per head that exists", "[results][export]") {
  const auto lines = csv_lines(test::small_results(), {"n_rows", "kl_mean"});
  CHECK(lines.front() ==
        "config,capture,layer,layer_kind,softmax_scale,selector,budget,n_sel_queries,budget_keys,"
        "budget_percent,q_head,n_rows,kl_mean");
  // Layers 3 and 7 of a have 3 heads, layer 3 of b has 2: 8 heads for each of 3 configurations.
  CHECK(lines.size() == 1 + 3 * 8);
  // n_rows is column 70 and kl_mean column 24 of small_value.
  CHECK(lines[1] == "bb,a,3,full,0.125,quoka,64,16,64,,0,70000,24000");
  CHECK(lines[4] == "bb,a,7,full,0.125,quoka,64,16,64,,0,,");  // failed: visible, without values
  CHECK(lines.back() == "aa,b,3,window+unrotated,0.5,oracle,64,,64,,1,70221,24221");
}

TEST_CASE("csv holds every metric by default", "[results][export]") {
  const auto lines = csv_lines(test::small_results(), {});
  const auto commas = [](const std::string& line) { return std::ranges::count(line, ','); };
  CHECK(commas(lines.front()) == 10 + std::ssize(cell_columns()));
  CHECK(commas(lines.back()) == commas(lines.front()));
}

TEST_CASE("csv quotes fields with commas and quotes", "[results][export]") {
  Results results = test::small_results();
  results.axes.captures[0].stem = "a,\"b\"";
  CHECK_THAT(csv_lines(results, {"n_rows"})[1], test::contains("bb,\"a,\"\"b\"\"\",3"));
}

TEST_CASE("an unknown csv column is refused by name", "[results][export]") {
  std::stringstream text;
  const std::vector<std::string> columns{"kl"};
  CHECK_THROWS_AS(write_csv(test::small_results(), columns, text), ConfigError);
  CHECK_THROWS_WITH(write_csv(test::small_results(), columns, text), test::contains("\"kl\""));
}
