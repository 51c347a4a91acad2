#include "quoka/selection/budget.hpp"

#include "quoka/core/error.hpp"
#include "support/catch.hpp"

using namespace quoka;
using quoka::test::contains;

TEST_CASE("P16 a percentage is rounded up from the decimal as written", "[selection][budget]") {
  CHECK(Budget::parse("10%").keys(30) == 3);  // 0.1 * 30 in binary is above 3
  CHECK(Budget::parse("10%").keys(31) == 4);
  CHECK(Budget::parse("12.5%").keys(8) == 1);
  CHECK(Budget::parse("12.5%").keys(9) == 2);
  CHECK(Budget::parse("0.000001%").keys(100'000'000) == 1);
  CHECK(Budget::parse("0.000001%").keys(100'000'001) == 2);
  CHECK(Budget::parse("100%").keys(17) == 17);
  CHECK(Budget::parse("40%").keys(2) == 1);
}

TEST_CASE("P16 a percentage of nothing still asks for one key", "[selection][budget]") {
  CHECK(Budget::parse("25%").keys(0) == 1);
  CHECK(Budget::parse("25%").keys(1) == 1);
}

TEST_CASE("equal budgets have one spelling", "[selection][budget]") {
  CHECK(Budget::parse("25.50%").text() == "25.5%");
  CHECK(Budget::parse("025%").text() == "25%");
  CHECK(Budget::parse("0256").text() == "256");
  CHECK(Budget::parse("25.0%") == Budget::parse("25%"));
  CHECK(Budget::parse("25%").percent() == 25.0);
}

TEST_CASE("what is not a budget is refused with its text", "[selection][budget]") {
  for (const char* text : {"0",
                           "-1",
                           "-5%",
                           "0%",
                           "0.0%",
                           "101%",
                           "100.000001%",
                           "25 %x",
                           "25 %",
                           "%",
                           ".5%",
                           "5.%",
                           "1e3",
                           "12.5",
                           "",
                           "0x10",
                           "+5",
                           "1.2345678%",
                           "99999999999999999999",
                           "4294967296"}) {
    INFO(text);
    CHECK_THROWS_AS(Budget::parse(text), ConfigError);
    CHECK_THROWS_WITH(Budget::parse(text), contains(text));
  }
  CHECK_THROWS_AS(Budget::from_keys(0), ConfigError);
}
