#include "quoka/selection/parameters.hpp"

#include <set>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"

using namespace quoka;
using quoka::test::contains;

namespace {

SelectorConfig config_of(std::initializer_list<std::pair<const char*, const char*>> values) {
  SelectorConfig config;
  for (const auto& [name, value] : values) {
    find_parameter(name)->read(value, config);
  }
  return config;
}

}  // namespace

TEST_CASE("the defaults are the paper's", "[selection][parameters]") {
  CHECK(canonical_text({}) ==
        "selector=quoka chunk_size=128 chunk_offset=0 budget=1024 n_sel_queries=16 "
        "query_rule=lowest_cosine query_scope=per_head query_mean=raw score=cosine pairing=rank "
        "head_aggregation=mean_first query_aggregation=max candidates=history keep_first=0 "
        "keep_recent=0");
}

TEST_CASE("every parameter prints what it reads", "[selection][parameters]") {
  for (const auto& [name, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"selector", "keydiff"},
                                                                  {"chunk_size", "96"},
                                                                  {"chunk_offset", "50"},
                                                                  {"budget", "12.5%"},
                                                                  {"n_sel_queries", "4"},
                                                                  {"query_rule", "farthest_point"},
                                                                  {"query_scope", "per_group"},
                                                                  {"query_mean", "normalized"},
                                                                  {"score", "softmax"},
                                                                  {"pairing", "position"},
                                                                  {"head_aggregation", "max_after"},
                                                                  {"query_aggregation", "mean"},
                                                                  {"candidates", "cache"},
                                                                  {"keep_first", "4"},
                                                                  {"keep_recent", "64"},
                                                                  {"seed", "7"}}) {
    INFO(name);
    CHECK(find_parameter(name)->print(config_of({{name, value}})) == value);
  }
}

TEST_CASE("parameters that cannot matter fold away", "[selection][parameters]") {
  const auto same = [](const SelectorConfig& a, const SelectorConfig& b) {
    return config_id(a) == config_id(b);
  };
  using Values = std::initializer_list<std::pair<const char*, const char*>>;
  const auto folds = [&](Values base, const char* name, const char* value) {
    SelectorConfig changed = config_of(base);
    find_parameter(name)->read(value, changed);
    return same(config_of(base), changed);
  };
  CHECK(folds({{"query_rule", "stride"}}, "query_mean", "normalized"));
  CHECK(folds({{"query_rule", "all"}}, "n_sel_queries", "3"));
  CHECK(folds({{"query_rule", "all"}}, "pairing", "position"));
  CHECK(folds({{"query_rule", "largest_norm"}}, "query_mean", "normalized"));
  CHECK(folds({{"query_scope", "per_group"}}, "pairing", "position"));
  CHECK(folds({{"head_aggregation", "max_after"}}, "pairing", "position"));
  CHECK(folds({{"query_aggregation", "mean"}}, "pairing", "position"));
  CHECK(folds({}, "seed", "3"));
  CHECK(folds({{"selector", "oracle"}}, "keep_first", "4"));
  CHECK(folds({{"selector", "oracle"}}, "score", "dot"));
  CHECK(folds({{"selector", "sink_recent"}}, "keep_recent", "9"));
  CHECK(folds({{"selector", "random"}}, "query_rule", "all"));

  CHECK_FALSE(folds({}, "query_mean", "normalized"));
  CHECK_FALSE(folds({}, "pairing", "position"));
  CHECK_FALSE(folds({{"query_rule", "random"}}, "seed", "3"));
  CHECK_FALSE(folds({{"query_rule", "random"}}, "pairing", "position"));
  CHECK_FALSE(folds({{"selector", "random"}}, "seed", "3"));
  CHECK_FALSE(folds({{"selector", "sink_recent"}}, "keep_first", "4"));
  CHECK_FALSE(folds({{"selector", "oracle"}}, "candidates", "cache"));
  CHECK_FALSE(folds({}, "budget", "25%"));
}

TEST_CASE("a folded parameter has no effective value", "[selection][parameters]") {
  const SelectorConfig oracle = config_of({{"selector", "oracle"}, {"score", "dot"}});

  CHECK(effective_value(oracle, *find_parameter("score")).empty());
  CHECK(effective_value(oracle, *find_parameter("budget")) == "1024");
  CHECK(canonical(oracle).score == Score::cosine);
}

TEST_CASE("a wrong value names parameter and value and what is allowed",
          "[selection][parameters]") {
  SelectorConfig config;
  CHECK_THROWS_WITH(find_parameter("score")->read("euclid", config),
                    contains("score \"euclid\"") && contains("cosine, dot, softmax"));
  CHECK_THROWS_WITH(find_parameter("n_sel_queries")->read("0", config),
                    contains("n_sel_queries 0"));
  CHECK_THROWS_AS(find_parameter("chunk_size")->read("-1", config), ConfigError);
  CHECK_THROWS_AS(find_parameter("chunk_size")->read("12.5", config), ConfigError);
  CHECK_THROWS_AS(find_parameter("seed")->read("", config), ConfigError);
  CHECK(find_parameter("sead") == nullptr);
}

TEST_CASE("a first chunk longer than a chunk is refused", "[selection][parameters]") {
  CHECK_THROWS_AS(check_consistent(config_of({{"chunk_offset", "128"}})), ConfigError);
  CHECK_NOTHROW(check_consistent(config_of({{"chunk_offset", "127"}})));
}
