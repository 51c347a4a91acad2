#include "quoka/study/settings.hpp"

#include <algorithm>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"

namespace {

using namespace quoka;

TEST_CASE("Samples are ascending positions without repetition", "[study][settings]") {
  const std::vector<Index> samples = sample_positions(1000, {.n_samples = 50}, 0);
  CHECK(samples.size() == 50);
  CHECK(std::ranges::adjacent_find(samples, std::greater_equal<>()) == samples.end());
  CHECK((samples.front() >= 0 && samples.back() < 1000));
}

TEST_CASE("More samples contain fewer and another seed or stream is another sample",
          "[study][settings]") {
  const std::vector<Index> few = sample_positions(1000, {.n_samples = 50}, 0);
  const std::vector<Index> more = sample_positions(1000, {.n_samples = 90}, 0);
  CHECK(std::ranges::includes(more, few));
  CHECK(few != sample_positions(1000, {.n_samples = 50, .seed = 1}, 0));
  CHECK(few != sample_positions(1000, {.n_samples = 50}, 1));
}

TEST_CASE("All positions are samples where there are no more than asked for", "[study][settings]") {
  CHECK(sample_positions(3, {.n_samples = 3}, 0) == std::vector<Index>{0, 1, 2});
  CHECK(sample_positions(2, {.n_samples = 1024}, 0) == std::vector<Index>{0, 1});
}

TEST_CASE("The whole prompt is one chunk whose keys all compete", "[study][settings]") {
  const SelectorConfig whole = marked_selection({.chunk_size = 0}, 300);
  CHECK(whole.chunk_size == 300);
  CHECK(whole.candidates == Candidates::cache);
  const SelectorConfig chunked = marked_selection({.chunk_size = 64}, 300);
  CHECK(chunked.chunk_size == 64);
  CHECK(chunked.candidates == Candidates::history);
  CHECK(marked_selection({.chunk_size = 512}, 300).chunk_size == 300);
}

TEST_CASE("Sizes that make no sense are refused", "[study][settings]") {
  CHECK_THROWS_AS(marked_selection({.chunk_size = -1}, 9), ConfigError);
  CHECK_THROWS_AS(marked_selection({.n_sel_queries = 0}, 9), ConfigError);
  CHECK_THROWS_AS(marked_selection({.sink_size = -1}, 9), ConfigError);
  CHECK_THROWS_AS(marked_selection({.n_samples = 0}, 9), ConfigError);
}

}  // namespace
