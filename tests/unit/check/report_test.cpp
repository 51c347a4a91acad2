#include "quoka/check/report.hpp"

#include <limits>

#include "support/catch.hpp"
#include "unit/check/flat_results.hpp"

using namespace quoka;

namespace {

/// A worse row, an improved one, an undefined one; the rest is equal.
Comparison small_comparison() {
  const Results before = test::flat_results();
  Results after = test::flat_results();
  test::set_heads(after, "out_rel_l2_mean", 0, 0, 0.75F, 0.75F);
  test::set_heads(after, "oracle_ratio", 1, 1, 0.75F, 0.75F);
  const float nan_value = std::numeric_limits<float>::quiet_NaN();
  test::set_heads(after, "needle_key_recall", 0, 2, nan_value, nan_value);
  after.axes.captures[0] = {"b", "b.h5", "22ee", "<model> & \"b\" | \x01\xff"};
  return compare(make_profile(before, {}), after);
}

Index count(const std::string& text, const std::string& part) {
  Index n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

}  // namespace

TEST_CASE("the text names every difference and ends with the verdict", "[check][report]") {
  const std::string text = report_text(small_comparison());
  CHECK_THAT(text, test::contains("NOT those of the profile"));
  CHECK_THAT(text, test::contains("worse      early   out_rel_l2_mean    mean       0.5       0.75 "
                                  "      +0.25   0.025      aa budget=64"));
  CHECK_THAT(text, test::contains("undefined  late    needle_key_recall  mean       0.5       "
                                  "undefined          0.1        aa budget=64"));
  CHECK_THAT(text, test::contains("improved   middle  oracle_ratio"));
  CHECK(text.find("improved   middle") > text.find("undefined  late"));  // failures first
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  CHECK(last == "FAILED: 2 of 42 rows failed (1 worse, 1 undefined, 1 improved)\n");
}

TEST_CASE("the text of equal results holds no difference", "[check][report]") {
  const Results results = test::flat_results();
  const std::string text = report_text(compare(make_profile(results, {}), results));
  CHECK_THAT(text, test::contains("passed: 0 of 42 rows failed\n"));
  CHECK_THAT(text, test::contains("out_rel_l2_mean           lower   6     0       0         0%"));
  CHECK_THAT(text, !test::contains("outcome"));
}

TEST_CASE("markdown tables have as many cells in every line", "[check][report]") {
  const std::string text = report_markdown(small_comparison());
  CHECK_THAT(text, test::contains("## quoka-check FAILED: 2 of 42 rows failed"));
  CHECK_THAT(text, test::contains("| worse | early | out\\_rel\\_l2\\_mean | mean | 0.5 | 0.75 | "
                                  "+0.25 | 0.025 | aa budget=64 |\n"));
  CHECK_THAT(text, test::contains("\\<model> & \"b\" \\| "));
  CHECK(count(text, "| --- | --- |") >= 2);
}

TEST_CASE("junit has a case per row and escapes what XML cannot hold", "[check][report]") {
  const std::string text = report_junit(small_comparison());
  CHECK(count(text, "<testcase ") == 42);
  CHECK(count(text, "<failure ") == 2);
  CHECK(count(text, "<system-out>") == 1);
  CHECK_THAT(text, test::contains("tests=\"42\" failures=\"2\""));
  CHECK_THAT(text, test::contains("&lt;model&gt; &amp; &quot;b&quot; | ??"));
  CHECK_THAT(text, test::contains("message=\"worse: expected 0.5 +- 0.025 (lower is better), found "
                                  "0.75\""));
}
