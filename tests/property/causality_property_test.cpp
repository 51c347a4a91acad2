// Nothing after a chunk matters to it; inside a chunk only what the method may look at.

#include "reference/compare.hpp"
#include "support/bits.hpp"
#include "support/catch.hpp"

namespace quoka::test {
namespace {

ReplaySettings everything() {
  ReplaySettings settings;
  settings.by_chunk = true;
  settings.selections = true;
  return settings;
}

/// Gives other values to rows [begin, end) of every matrix.
void scramble(std::vector<Matrix>& matrices, Index begin, Index end) {
  NumberStream numbers(999);
  for (Matrix& matrix : matrices) {
    matrix.middleRows(begin, end - begin) = 3.0F * numbers.matrix(end - begin, matrix.cols());
  }
}

/// Kept sets of the chunk at that position, one per KV head.
std::vector<std::vector<std::int32_t>> kept_at(const CellResult& result, Index chunk_begin) {
  std::vector<std::vector<std::int32_t>> sets;
  for (const KeptKeys& kept : result.kept) {
    if (kept.chunk_begin == chunk_begin) {
      sets.push_back(kept.key_indices);
    }
  }
  return sets;
}

/// All configurations whose selection may look at keys of the chunk itself.
bool may_see_own_keys(const SelectorConfig& config) {
  return config.selector == SelectorKind::oracle || config.candidates == Candidates::cache ||
         (config.selector == SelectorKind::quoka && config.score == Score::softmax);
}

std::vector<SelectorConfig> configs_on_equal_chunks() {
  std::vector<SelectorConfig> configs;
  for (const SelectorConfig& config : mixed_configs()) {
    if (config.chunk_size == 16 && config.chunk_offset == 0) {
      configs.push_back(config);
    }
  }
  return configs;
}

void check_chunks_before(Index position, const CellResult& before, const CellResult& after,
                         const std::string& name) {
  INFO(name);
  for (std::size_t i = 0; i < before.chunks.size(); ++i) {
    if (before.chunks[i].end <= position && i < after.chunks.size() &&
        before.chunks[i] == after.chunks[i]) {
      INFO("chunk " << i);
      CHECK(same_bits(before.chunk_values[i], after.chunk_values[i]));
      CHECK(kept_at(before, before.chunks[i].begin) == kept_at(after, before.chunks[i].begin));
    }
  }
}

}  // namespace

TEST_CASE("P19 chunks that end before a change are bit-identical for every selector",
          "[property][causality]") {
  const Index q_offset = GENERATE(0, 5);
  const Index position =
      GENERATE(32, 37, 48);  // first changed position; chunks end at 16 32 48 ...
  const TinyLayer layer = tiny_layer({.n_tokens = 60, .q_offset = q_offset}, 111);
  TinyLayer changed = layer;
  const Index n_keys = layer.shape.n_keys;
  scramble(changed.q, position - q_offset, n_keys - q_offset);
  scramble(changed.k, position, n_keys);
  scramble(changed.v, position, n_keys);
  const auto configs = mixed_configs();
  const auto before = replay_layer(layer.input(), configs, everything());
  const auto after = replay_layer(changed.input(), configs, everything());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    check_chunks_before(position, before[i], after[i], canonical_text(configs[i]));
    CHECK_FALSE(same_bits(before[i].chunk_values.back(), after[i].chunk_values.back()));
  }
}

TEST_CASE("a capture cut to its first tokens gives the same chunks", "[property][causality]") {
  const Index n_kept = GENERATE(32, 37, 48, 59);
  const TinyLayer layer = tiny_layer({.n_tokens = 60, .q_offset = 5}, 112);
  TinyLayer cut = layer;
  cut.shape.n_tokens = n_kept;
  cut.shape.n_keys = n_kept + 5;
  for (Matrix& q : cut.q) {
    q = q.topRows(n_kept).eval();
  }
  for (auto* tensor : {&cut.k, &cut.v}) {
    for (Matrix& matrix : *tensor) {
      matrix = matrix.topRows(n_kept + 5).eval();
    }
  }
  const auto configs = mixed_configs();
  const auto whole = replay_layer(layer.input(), configs, everything());
  const auto part = replay_layer(cut.input(), configs, everything());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    check_chunks_before(n_kept + 5, whole[i], part[i], canonical_text(configs[i]));
  }
}

TEST_CASE("values never change a selection", "[property][causality]") {
  const TinyLayer layer = tiny_layer({.n_tokens = 60}, 113);
  TinyLayer changed = layer;
  scramble(changed.v, 0, 60);
  const auto configs = mixed_configs();
  const auto before = replay_layer(layer.input(), configs, everything());
  const auto after = replay_layer(changed.input(), configs, everything());
  for (std::size_t i = 0; i < configs.size(); ++i) {
    INFO(canonical_text(configs[i]));
    REQUIRE(before[i].kept.size() == after[i].kept.size());
    for (std::size_t j = 0; j < before[i].kept.size(); ++j) {
      CHECK(before[i].kept[j].key_indices == after[i].kept[j].key_indices);
    }
  }
}

TEST_CASE("P19 own keys of the chunk matter only to oracle and softmax and cache",
          "[property][causality]") {
  // Keys from the third chunk's fifth row on change.
  const TinyLayer layer = tiny_layer({.n_tokens = 60}, 114);
  TinyLayer changed = layer;
  scramble(changed.k, 37, 60);
  const auto configs = configs_on_equal_chunks();
  const auto before = replay_layer(layer.input(), configs, everything());
  const auto after = replay_layer(changed.input(), configs, everything());
  int n_changed = 0;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    INFO(canonical_text(configs[i]));
    const bool same = kept_at(before[i], 32) == kept_at(after[i], 32);
    CHECK((same || may_see_own_keys(configs[i])));
    n_changed += same ? 0 : 1;
  }
  CHECK(n_changed > 0);  // some of those that may depend on them do
}

TEST_CASE("P20 a later query of the chunk may change the selection but only of quoka and oracle",
          "[property][causality]") {
  const TinyLayer layer = tiny_layer({.n_tokens = 60}, 115);
  TinyLayer changed = layer;
  scramble(changed.q, 37, 48);
  const auto configs = configs_on_equal_chunks();
  const auto before = replay_layer(layer.input(), configs, everything());
  const auto after = replay_layer(changed.input(), configs, everything());
  bool paper_changed = false;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    INFO(canonical_text(configs[i]));
    const bool looks_at_queries =
        configs[i].selector == SelectorKind::quoka || configs[i].selector == SelectorKind::oracle;
    const bool same = kept_at(before[i], 32) == kept_at(after[i], 32);
    CHECK((same || looks_at_queries));
    paper_changed = paper_changed || (i == 0 && !same);
  }
  CHECK(paper_changed);
}

}  // namespace quoka::test
