#include "quoka/capture/verified_state.hpp"

#include <fstream>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace quoka {

using namespace test;

TEST_CASE("a note of a verification holds for the verified bytes only", "[capture][verify]") {
  const TempDir directory;
  const auto capture = directory / "a.h5";
  CHECK(verified_state(capture, "abc") == "not verified");
  VerifyReport report;
  report.verdict = Verdict::passed;
  write_verified_state(capture, "abc", report);
  CHECK(verified_state(capture, "abc") == "passed");
  CHECK(verified_state(capture, "abd") == "not verified");
  report.verdict = Verdict::failed;
  report.layers.push_back({3, Verdict::failed, {}, "k \"and\" v are swapped"});
  write_verified_state(capture, "abc", report);
  CHECK(verified_state(capture, "abc") == "failed");
}

TEST_CASE("a damaged note is no note", "[capture][verify]") {
  const TempDir directory;
  const auto capture = directory / "a.h5";
  for (const char* text :
       {"", "{", "[]", "{\"verdict\": \"passed\"}",
        "{\"format\": \"quoka-verified 1\", \"capture_sha256\": \"abc\", \"verdict\": \"fine\"}",
        "{\"format\": \"quoka-verified 1\", \"capture_sha256\": \"abc\", \"verdict\": 1}"}) {
    std::ofstream(verified_path(capture)) << text;
    INFO(text);
    CHECK(verified_state(capture, "abc") == "not verified");
  }
}

TEST_CASE("the report as JSON writes undefined numbers as null", "[capture][verify]") {
  VerifyReport report;
  report.layers.push_back({});
  const std::string text = verify_report_json("a.h5", "abc", report);
  CHECK_THAT(text, contains("\"worst_out_error\": null"));
  CHECK_THAT(text, contains("\"verdict\": \"no reference\""));
}

}  // namespace quoka
