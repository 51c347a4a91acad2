// The variables of a geometry file: the one place that names them. docs/geometry.md explains them.

#include "quoka/study/table.hpp"

namespace quoka {
namespace {

using Names = std::vector<std::string>;

const Names per_q_head{"layer", "q_head"};
const Names per_kv_head{"layer", "kv_head"};

Names with(Names dimensions, const Names& more) {
  dimensions.insert(dimensions.end(), more.begin(), more.end());
  return dimensions;
}

Names q_with(const Names& more) { return with(per_q_head, more); }
Names kv_with(const Names& more) { return with(per_kv_head, more); }

using Variables = std::vector<GeometryVariable>;

/// Figure 2c: similarity to the mean query against the largest attention outside the sinks.
void add_attention(Variables& all) {
  constexpr std::string_view pearson =
      "Pearson's correlation of S and the largest attention outside the sinks; S = -cos(query, "
      "mean query of its chunk)";
  constexpr std::string_view log_pearson =
      "Pearson's correlation of S and ln(largest attention outside the sinks)";
  constexpr std::string_view spearman =
      "Spearman's correlation of the same, average ranks; equal for raw and log";
  constexpr std::string_view count = "queries that see a key outside the sinks";
  all.push_back({"similarity_attention_pearson", per_q_head, "figure 2c, raw", pearson});
  all.push_back({"similarity_attention_log_pearson", per_q_head, "figure 2c, log", log_pearson});
  all.push_back({"similarity_attention_spearman", per_q_head, "figure 2c, ranks", spearman});
  all.push_back({"similarity_attention_n", per_q_head, "queries in the correlations", count});
  const Names by_chunk = q_with({"chunk"});
  all.push_back({"chunk_attention_pearson", by_chunk, "figure 2c of one chunk, raw", pearson});
  all.push_back(
      {"chunk_attention_log_pearson", by_chunk, "figure 2c of one chunk, log", log_pearson});
  all.push_back({"chunk_attention_spearman", by_chunk, "figure 2c of one chunk, ranks", spearman});
  all.push_back({"chunk_attention_n", by_chunk, "queries in the correlations of a chunk", count});
}

/// Figure 2a: where queries look, by their similarity to the mean query.
void add_classes(Variables& all) {
  const Names by_class = q_with({"similarity_class"});
  all.push_back({"class_n_queries", by_class, "queries of a class", ""});
  all.push_back({"class_similarity", by_class, "mean cosine with the mean query", ""});
  all.push_back({"class_sink_share", by_class, "mean attention on the sinks",
                 "sum of p over the first sink_size positions"});
  all.push_back({"class_effective_keys", by_class, "keys that a query spreads over",
                 "mean of exp(entropy of p outside the sinks, made to sum to 1)"});
  all.push_back({"class_effective_share", by_class, "share of its keys that a query spreads over",
                 "mean of exp(entropy) / (visible keys outside the sinks)"});
  all.push_back({"class_key_share", q_with({"similarity_class", "key_bin"}),
                 "figure 2a: mean attention on a range of positions, sinks left out",
                 "sum of p over the bin's keys, mean over the queries of the class"});
  all.push_back({"class_top_share", q_with({"similarity_class", "top_percent"}),
                 "share of the class's attention on the keys that it likes best",
                 "p outside the sinks summed over the class's queries, summed over its largest "
                 "top_percent of keys / summed over all"});
}

/// Figure 3: how scores spread over queries and over heads.
void add_tails(Variables& all) {
  const auto add = [&all](const Names& dimensions, const std::string& over, std::string_view what) {
    const auto name = [&over](std::string_view first) { return std::string(first) + over; };
    Names binned = dimensions;
    binned.emplace_back("deviation_bin");
    all.push_back({name("score_n_over_"), dimensions, "scores that were compared", what});
    all.push_back({name("score_spread_over_"), dimensions, "root mean square deviation", what});
    all.push_back(
        {name("score_skewness_over_"), dimensions, "skewness: third moment / second^1.5", what});
    all.push_back({name("score_kurtosis_over_"), dimensions,
                   "excess kurtosis: fourth moment / second^2 - 3", what});
    all.push_back({name("score_top_share_over_"), dimensions,
                   "largest deviation / sum of the positive ones, mean", what});
    all.push_back(
        {name("score_deviation_over_"), binned, "figure 3: share of the deviations", what});
  };
  add(per_q_head, "queries", "cos(kept query, candidate key) minus its mean over kept queries");
  add(per_kv_head, "heads",
      "cos(kept query, candidate key) minus its mean over the group's heads at one slot");
}

/// Theorem 1. alpha = cos(mean query, key), beta = cos(query, key), gamma = cos(query, mean query).
void add_theorem(Variables& all) {
  all.push_back({"theorem_n_triples", per_q_head, "triples that were checked",
                 "sampled queries with the sampled keys that they see"});
  all.push_back({"theorem_applies_share", per_q_head, "share where the theorem's condition holds",
                 "alpha = cos(mean query, key) < 0 and beta = cos(query, key) > 0"});
  all.push_back({"theorem_key_negative_share", per_q_head, "share with alpha < 0", ""});
  all.push_back({"theorem_applies_similarity", per_q_head,
                 "mean cos(query, mean query) where the condition holds", ""});
  const auto add = [&all](const std::string& bound, std::string_view formula) {
    all.push_back({bound + "_slack_mean", per_q_head, "bound - cos(query, mean query)", formula});
    all.push_back({bound + "_slack_min", per_q_head, "smallest slack of the bound", formula});
    all.push_back(
        {bound + "_slack_applies", per_q_head, "mean slack where the condition holds", formula});
    all.push_back({bound + "_violations", per_q_head, "triples with slack below -1e-6", formula});
  };
  add("paper_bound", "1 + alpha beta - alpha^2 / 2 - beta^2 / 2");
  add("spherical_bound", "alpha beta + sqrt((1 - alpha^2) (1 - beta^2))");
}

/// Figure 2b: principal components of queries and keys.
void add_components(Variables& all) {
  const auto add = [&all](const std::string& of, const Names& dimensions, std::string_view what) {
    const Names by_component = with(dimensions, {"component"});
    all.push_back({of + "_pca_variance", by_component, "variance along a component", what});
    all.push_back({of + "_pca_share", by_component, "explained share of the total variance", what});
    all.push_back({of + "_pca_near_equal", by_component,
                   "1: within 1 % of a neighbouring variance, so its direction may turn", what});
    all.push_back({of + "_pca_basis", with(by_component, {"channel"}),
                   "unit direction; its largest loading is positive", what});
  };
  add("joint", per_q_head, "queries of the head and keys of its KV head together");
  all.push_back({"joint_query_coordinates", q_with({"query", "component"}),
                 "figure 2b: queries on the joint components", ""});
  all.push_back({"joint_key_coordinates", q_with({"key", "component"}),
                 "figure 2b: keys on the joint components", ""});
  all.push_back(
      {"similarity_key_spearman", per_q_head,
       "figure 2b as a number: S against cos(query, mean key)",
       "Spearman's correlation over all queries; positive: what is far from the mean query "
       "is nearer to the keys"});
  add("query", per_q_head, "queries alone");
  all.push_back({"query_coordinates", q_with({"query", "component"}),
                 "queries on the components of the queries", ""});
  add("key", per_kv_head, "keys alone");
  all.push_back(
      {"key_coordinates", kv_with({"key", "component"}), "keys on the components of the keys", ""});
}

void add_norms_and_positions(Variables& all) {
  all.push_back({"query_norm_mean", per_q_head, "mean length of a query", ""});
  all.push_back({"query_norm_min", per_q_head, "length of the shortest query", ""});
  all.push_back({"query_norm_max", per_q_head, "length of the longest query", ""});
  all.push_back({"query_concentration", per_q_head, "1: all queries point one way; 0: no direction",
                 "length of the prompt's mean query / query_norm_mean"});
  all.push_back({"key_norm_mean", per_kv_head, "mean length of a key outside the sinks", ""});
  all.push_back({"key_norm_min", per_kv_head, "length of the shortest of them", ""});
  all.push_back({"key_norm_max", per_kv_head, "length of the longest of them", ""});
  all.push_back({"key_norm_sink_mean", per_kv_head, "mean length of a key of the sinks", ""});
  constexpr std::string_view spearman = "Spearman's correlation over all queries";
  all.push_back({"similarity_position_spearman", per_q_head, "S against position", spearman});
  all.push_back({"similarity_norm_spearman", per_q_head, "S against query length", spearman});
  all.push_back({"attention_position_spearman", per_q_head,
                 "largest attention outside the sinks against position", spearman});
  all.push_back({"similarity_by_position", q_with({"query_bin"}),
                 "mean cosine with the mean query, by range of positions", ""});
}

void add_samples(Variables& all) {
  all.push_back({"query_similarity", q_with({"query"}), "cosine with the mean query of its chunk",
                 "minus the paper's S"});
  all.push_back({"query_log_max_attention", q_with({"query"}),
                 "ln of the largest attention outside the sinks", ""});
  all.push_back({"query_norm", q_with({"query"}), "length of a query", ""});
  all.push_back({"query_kept", q_with({"query"}), "1: kept to score the keys", ""});
  all.push_back({"key_norm", kv_with({"key"}), "length of a key", ""});
  all.push_back({"key_kept_share", kv_with({"key"}), "share of its selections that kept the key",
                 "chunks that kept it / chunks with more candidates than budget, it among them"});
}

}  // namespace

const std::vector<GeometryVariable>& geometry_variables() {
  static const Variables variables = [] {
    Variables all;
    add_attention(all);
    add_classes(all);
    add_tails(all);
    add_theorem(all);
    add_components(all);
    add_norms_and_positions(all);
    add_samples(all);
    return all;
  }();
  return variables;
}

}  // namespace quoka
