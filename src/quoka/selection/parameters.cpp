#include "quoka/selection/parameters.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <type_traits>

#include "quoka/core/error.hpp"
#include "quoka/core/sha256.hpp"

namespace quoka {
namespace {

// ---- names of enumerators, in their order
// ---------------------------------------------------------

template <typename Enum>
constexpr auto enum_names = nullptr;
template <>
constexpr std::array<std::string_view, 10> enum_names<SelectorKind>{
    "quoka",  "oracle",           "random", "sink_recent", "keydiff",
    "snapkv", "sample_attention", "sparq",  "loki",        "less_is_more"};
template <>
constexpr std::array<std::string_view, 9> enum_names<QueryRule>{
    "lowest_cosine", "highest_cosine", "largest_norm",   "random", "stride",
    "first",         "last",           "farthest_point", "all"};
template <>
constexpr std::array<std::string_view, 2> enum_names<QueryScope>{"per_head", "per_group"};
template <>
constexpr std::array<std::string_view, 2> enum_names<QueryMean>{"raw", "normalized"};
template <>
constexpr std::array<std::string_view, 3> enum_names<Score>{"cosine", "dot", "softmax"};
template <>
constexpr std::array<std::string_view, 2> enum_names<Pairing>{"rank", "position"};
template <>
constexpr std::array<std::string_view, 3> enum_names<HeadAggregation>{"mean_first", "mean_after",
                                                                      "max_after"};
template <>
constexpr std::array<std::string_view, 2> enum_names<QueryAggregation>{"max", "mean"};
template <>
constexpr std::array<std::string_view, 2> enum_names<Candidates>{"history", "cache"};

// ---- reading and printing one value
// ---------------------------------------------------------------

template <typename Enum>
Enum parse_enum(std::string_view name, std::string_view text) {
  const auto& names = enum_names<Enum>;
  const auto found = std::ranges::find(names, text);
  require<ConfigError>(found != names.end(), "{} \"{}\" is not known; use one of: {}", name, text,
                       fmt::join(names, ", "));
  return static_cast<Enum>(found - names.begin());
}

template <typename Integer>
Integer parse_integer(std::string_view name, std::string_view text, Integer lowest) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require<ConfigError>(error == std::errc{} && end == text.data() + text.size(),
                       "{} \"{}\" is not a whole number that fits", name, text);
  constexpr auto highest = std::numeric_limits<Integer>::max() / 2;
  require<ConfigError>(value >= lowest && value <= highest,
                       "{} {} is out of range (at least {}, at most {})", name, value, lowest,
                       highest);
  return value;
}

template <auto member>
std::string print_member(const SelectorConfig& config) {
  using Value = std::remove_cvref_t<decltype(config.*member)>;
  if constexpr (std::is_enum_v<Value>) {
    return std::string(enum_names<Value>[static_cast<std::size_t>(config.*member)]);
  } else if constexpr (std::is_same_v<Value, Budget>) {
    return (config.*member).text();
  } else {
    return fmt::format("{}", config.*member);
  }
}

// ---- what matters to which configuration
// ----------------------------------------------------------

bool always(const SelectorConfig&) { return true; }
bool is_quoka(const SelectorConfig& c) { return c.selector == SelectorKind::quoka; }

/// True if the heads of a group may keep different rows.
bool rows_depend_on_head(const SelectorConfig& c) {
  return is_quoka(c) && (uses_mean_query(c) || c.query_rule == QueryRule::largest_norm ||
                         c.query_rule == QueryRule::random);
}

/// Slots are paired only when heads are averaged slot by slot; a mean over slots afterwards gives
/// the same sum for any pairing, and rows shared by the group are paired with themselves.
bool uses_pairing(const SelectorConfig& c) {
  return rows_depend_on_head(c) && c.query_scope == QueryScope::per_head &&
         c.head_aggregation == HeadAggregation::mean_first &&
         c.query_aggregation == QueryAggregation::max;
}

bool uses_seed(const SelectorConfig& c) {
  return c.selector == SelectorKind::random || (is_quoka(c) && c.query_rule == QueryRule::random);
}

bool uses_keep_first(const SelectorConfig& c) { return c.selector != SelectorKind::oracle; }
bool uses_keep_recent(const SelectorConfig& c) {
  return c.selector != SelectorKind::oracle && c.selector != SelectorKind::sink_recent;
}
bool uses_query_count(const SelectorConfig& c) {
  return (is_quoka(c) && c.query_rule != QueryRule::all) ||
         c.selector == SelectorKind::sample_attention;
}
bool is_snapkv(const SelectorConfig& c) { return c.selector == SelectorKind::snapkv; }
bool uses_channels(const SelectorConfig& c) {
  return c.selector == SelectorKind::sparq || c.selector == SelectorKind::loki;
}
bool is_less_is_more(const SelectorConfig& c) { return c.selector == SelectorKind::less_is_more; }

// ---- the table
// ------------------------------------------------------------------------------------

template <auto member>
using MemberType = std::remove_cvref_t<decltype(std::declval<SelectorConfig>().*member)>;

template <auto member>
void parse_choice(std::string_view name, std::string_view text, SelectorConfig& config) {
  config.*member = parse_enum<MemberType<member>>(name, text);
}

template <auto member, int lowest>
void parse_number(std::string_view name, std::string_view text, SelectorConfig& config) {
  config.*member = parse_integer<MemberType<member>>(name, text, lowest);
}

template <auto member>
constexpr Parameter choice(std::string_view name, std::string_view help,
                           bool (*matters)(const SelectorConfig&)) {
  return {name, help, false, &print_member<member>, &parse_choice<member>, matters};
}

template <auto member, int lowest>
constexpr Parameter number(std::string_view name, std::string_view help,
                           bool (*matters)(const SelectorConfig&)) {
  return {name, help, true, &print_member<member>, &parse_number<member, lowest>, matters};
}

using C = SelectorConfig;

template <auto member>
void parse_amount(std::string_view name, std::string_view text, SelectorConfig& config) {
  config.*member = Budget::parse(text, name);
}

constexpr std::array<Parameter, 20> table{{
    choice<&C::selector>("selector",
                         "quoka, oracle, random, sink_recent, keydiff, snapkv, sample_attention, "
                         "sparq, loki or less_is_more",
                         always),
    number<&C::chunk_size, 1>("chunk_size", "rows per prefill chunk, >= 1", always),
    number<&C::chunk_offset, 0>("chunk_offset", "rows of the first chunk when > 0", always),
    {"budget", "keys kept per chunk and KV head: a number, or a percentage of the candidates",
     false, &print_member<&C::budget>, &parse_amount<&C::budget>, always},
    number<&C::n_sel_queries, 1>("n_sel_queries", "rows kept per chunk to score the keys, >= 1",
                                 uses_query_count),
    choice<&C::query_rule>("query_rule",
                           "which rows score: lowest_cosine, highest_cosine, largest_norm, random, "
                           "stride, first, last, farthest_point or all",
                           is_quoka),
    choice<&C::query_scope>("query_scope", "rows kept per_head or per_group", rows_depend_on_head),
    choice<&C::query_mean>("query_mean", "mean query of raw or normalized rows", uses_mean_query),
    choice<&C::score>("score", "cosine, dot or softmax", is_quoka),
    choice<&C::pairing>("pairing", "slot order of kept rows: rank or position", uses_pairing),
    choice<&C::head_aggregation>("head_aggregation", "mean_first, mean_after or max_after",
                                 is_quoka),
    choice<&C::query_aggregation>("query_aggregation", "max or mean", is_quoka),
    choice<&C::candidates>("candidates", "keys that compete: history or cache", always),
    number<&C::keep_first, 0>("keep_first", "first candidates always kept", uses_keep_first),
    number<&C::keep_recent, 0>("keep_recent", "most recent candidates always kept",
                               uses_keep_recent),
    number<&C::seed, 0>("seed", "seed of random choices", uses_seed),
    number<&C::observation_window, 1>("observation_window", "snapkv: last rows that score, >= 1",
                                      is_snapkv),
    number<&C::pool_size, 1>("pool_size", "snapkv: neighbouring keys averaged, odd", is_snapkv),
    {"n_channels",
     "sparq, loki: channels or components that score: a number, or a percentage of head_dim", false,
     &print_member<&C::n_channels>, &parse_amount<&C::n_channels>, uses_channels},
    number<&C::source_layer, 0>("source_layer", "less_is_more: layer whose attention selects",
                                is_less_is_more),
}};

}  // namespace

bool uses_mean_query(const SelectorConfig& config) {
  return is_quoka(config) && (config.query_rule == QueryRule::lowest_cosine ||
                              config.query_rule == QueryRule::highest_cosine ||
                              config.query_rule == QueryRule::farthest_point);
}

std::span<const Parameter> parameters() { return table; }

const Parameter* find_parameter(std::string_view name) {
  const auto* const found = std::ranges::find(table, name, &Parameter::name);
  return found == table.end() ? nullptr : found;
}

std::vector<std::pair<std::string_view, std::string_view>> selector_descriptions() {
  return {
      {"quoka", "the paper's method; every step can be switched"},
      {"oracle", "best keys by true attention probability of the chunk: the ceiling"},
      {"random", "a random set of keys per chunk and KV head: the floor"},
      {"sink_recent", "the first keep_first keys and the most recent ones (StreamingLLM)"},
      {"keydiff", "keys least similar to the mean of the unit keys (KeyDiff)"},
      {"snapkv", "attention of the chunk's last rows, averaged over neighbouring keys (SnapKV)"},
      {"sample_attention", "attention of n_sel_queries evenly spaced rows (SampleAttention)"},
      {"sparq", "approximate attention from the largest query channels (SparQ)"},
      {"loki", "mean query and keys in the keys' first principal components (Loki)"},
      {"less_is_more", "one set for all heads from another layer's attention (LessIsMore)"},
  };
}

std::string effective_value(const SelectorConfig& config, const Parameter& parameter) {
  return parameter.matters(config) ? parameter.print(config) : "";
}

SelectorConfig canonical(const SelectorConfig& config) {
  SelectorConfig result;
  for (const Parameter& parameter : table) {
    if (parameter.matters(config)) {
      parameter.read(parameter.print(config), result);
    }
  }
  return result;
}

std::string canonical_text(const SelectorConfig& config) {
  std::string text;
  for (const Parameter& parameter : table) {
    if (parameter.matters(config)) {
      text +=
          fmt::format("{}{}={}", text.empty() ? "" : " ", parameter.name, parameter.print(config));
    }
  }
  return text;
}

std::string config_id(const SelectorConfig& config) {
  constexpr std::size_t id_digits = 10;
  return sha256_hex(canonical_text(config)).substr(0, id_digits);
}

void check_consistent(const SelectorConfig& config) {
  require<ConfigError>(
      config.chunk_offset < config.chunk_size,
      "chunk_offset {} is not below chunk_size {} (the first chunk would be longer "
      "than a chunk)",
      config.chunk_offset, config.chunk_size);
}

}  // namespace quoka
