#include "quoka/results/table.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <sstream>
#include <vector>

#include "support/catch.hpp"
#include "unit/results/small_results.hpp"

using namespace quoka;

namespace {

std::vector<std::vector<std::string>> table_words(const Results& results, TableRows rows) {
  std::istringstream text(results_table(results, rows));
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(text, line) && !line.empty();) {
    std::istringstream words(line);
    lines.emplace_back(std::istream_iterator<std::string>(words),
                       std::istream_iterator<std::string>());
  }
  return lines;
}

void set_everywhere(Results& results, Index column, float value) {
  std::ranges::fill(std::span(results.values)
                        .subspan(static_cast<std::size_t>(column * results.axes.n_values()),
                                 static_cast<std::size_t>(results.axes.n_values())),
                    value);
}

}  // namespace

TEST_CASE("the table shows parameters that vary and one line per configuration",
          "[results][table]") {
  const auto lines = table_words(test::small_results(), TableRows::all);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0][0] == "selector");
  CHECK(lines[0][1] == "budget");
  CHECK(lines[0][2] == "recall");  // n_sel_queries is 16 or folded: it does not vary
  CHECK(lines[1][0] == "quoka");
  CHECK(lines[2][1] == "12.5%");
  CHECK(lines[3][0] == "oracle");
}

TEST_CASE("the table averages over captures layers and heads and takes the worst tail",
          "[results][table]") {
  Results results = empty_results({}, test::small_axes());
  const Index recall = cell_column(RowMetric::mass_recall_no_sink, RowStatistic::mean);
  const Index tail = cell_column(RowMetric::out_rel_l2, RowStatistic::p99);
  results.heads(recall, {0, 0, 0})[0] = 0.5F;
  results.heads(recall, {0, 0, 1})[2] = 0.25F;
  results.heads(recall, {0, 1, 0})[1] = 0.75F;
  results.heads(tail, {0, 0, 0})[0] = 0.125F;
  results.heads(tail, {0, 1, 0})[1] = 0.375F;
  const auto lines = table_words(results, TableRows::all);
  CHECK(lines[1][2] == "0.5000");  // mean of 0.5, 0.25, 0.75
  CHECK(lines[1][3] == "-");       // error is NaN
  CHECK(lines[1][4] == "0.3750");
  const auto by_layer = table_words(results, TableRows::by_layer);
  CHECK(by_layer.size() == 1 + 2 * 3);
  CHECK(by_layer[1][0] == "3");
  CHECK(by_layer[1][3] == "0.6250");  // 0.5 and 0.75
  CHECK(by_layer[4][0] == "7");
  CHECK(by_layer[4][3] == "0.2500");
  const auto by_capture = table_words(results, TableRows::by_capture);
  CHECK(by_capture[1][0] == "a");
  CHECK(by_capture[4][0] == "b");
  CHECK(by_capture[4][3] == "0.7500");
}

TEST_CASE("the table says when configurations were measured on different rows",
          "[results][table]") {
  Results results = test::small_results();
  const Index active = cell_column(CellCount::n_rows_active);
  set_everywhere(results, active, 10);
  CHECK_THAT(results_table(results, TableRows::all), !test::contains("different rows"));
  results.heads(active, {1, 0, 0})[0] = 9;
  const std::string text = results_table(results, TableRows::all);
  CHECK_THAT(text, test::contains("different rows"));
  CHECK_THAT(text, test::contains("--min_history 65"));  // the largest budget in keys is 64
  results.constants.min_history = 65;
  CHECK_THAT(results_table(results, TableRows::all), !test::contains("--min_history"));
}

TEST_CASE("one configuration still says its selector", "[results][table]") {
  ResultsAxes axes = test::small_axes();
  axes.config_ids.resize(1);
  for (ConfigParameter& parameter : axes.parameters) {
    parameter.values.resize(1);
  }
  const auto lines = table_words(empty_results({}, axes), TableRows::all);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1][0] == "quoka");
}

TEST_CASE("small numbers keep their digits", "[results][table]") {
  Results results = test::small_results();
  set_everywhere(results, cell_column(CellCount::floor_out_rel_l2), 3.25e-7F);
  CHECK(table_words(results, TableRows::all)[1].back() == "3.3e-07");
}
