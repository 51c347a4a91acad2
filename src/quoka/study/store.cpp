#include "quoka/study/store.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "quoka/geometry/correlation.hpp"

namespace quoka {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

/// numerator / denominator, NaN where there is nothing to average.
double mean_of(double sum, double n) { return n > 0 ? sum / n : nan_value; }

std::span<const double> numbers(const VectorD& vector) {
  return {vector.data(), static_cast<std::size_t>(vector.size())};
}

/// Rows of a head without NaN in y: x = S, y = ln of the largest attention.
struct Pairs {
  std::vector<double> dissimilarity;
  std::vector<double> attention;
  std::vector<double> log_attention;
  std::vector<double> position;
};

Pairs defined_pairs(const VectorD& similarity, const VectorD& log_max, IndexRange rows) {
  Pairs pairs;
  for (Index row = rows.begin; row < rows.end; ++row) {
    if (!std::isnan(log_max[row])) {
      pairs.dissimilarity.push_back(-similarity[row]);
      pairs.attention.push_back(std::exp(log_max[row]));
      pairs.log_attention.push_back(log_max[row]);
      pairs.position.push_back(static_cast<double>(row));
    }
  }
  return pairs;
}

/// Sum of the largest `percent` of the values (at least one of them) / sum of all.
double top_share(VectorD values, std::int64_t percent) {
  const Index n = std::max<Index>(1, (values.size() * percent + 99) / 100);
  std::ranges::nth_element(values, values.begin() + n - 1, std::greater<>());
  return mean_of(values.head(n).sum(), values.sum());
}

void store_bound(const HeadPlace& to, const std::string& bound, const BoundSlack& slack,
                 const TheoremCheck& check) {
  to.set(bound + "_slack_mean", mean_of(slack.sum, check.n_triples));
  to.set(bound + "_slack_min", check.n_triples > 0 ? slack.smallest : nan_value);
  to.set(bound + "_slack_applies", mean_of(slack.applies_sum, check.n_applies));
  to.set(bound + "_violations", slack.n_violations);
}

Index stored_components(const Pca& pca) { return std::min(n_components, pca.variances.size()); }

VectorD sum_of_rows(const ConstMatrixView& block) {
  VectorD sum = VectorD::Zero(block.cols());
  for (Index row = 0; row < block.rows(); ++row) {
    sum += block.row(row).cast<double>().transpose();
  }
  return sum;
}

/// Means of the values over equal ranges of rows.
void store_binned(const std::span<double>& to, const VectorD& values) {
  const Index n_bins = std::ssize(to);
  for (Index bin = 0; bin < n_bins; ++bin) {
    const Index begin = bin_begin(bin, values.size(), n_bins);
    to[static_cast<std::size_t>(bin)] =
        values.segment(begin, bin_begin(bin + 1, values.size(), n_bins) - begin).mean();
  }
}

}  // namespace

void store_correlations(const HeadPlace& to, const HeadChunks& chunks, const VectorD& log_max,
                        Index chunk_size) {
  const Index n_tokens = log_max.size();
  const Pairs all = defined_pairs(chunks.similarity, log_max, {0, n_tokens});
  to.set("similarity_attention_pearson", pearson(all.dissimilarity, all.attention));
  to.set("similarity_attention_log_pearson", pearson(all.dissimilarity, all.log_attention));
  to.set("similarity_attention_spearman", spearman(all.dissimilarity, all.log_attention));
  to.set("similarity_attention_n", static_cast<double>(all.attention.size()));
  to.set("attention_position_spearman", spearman(all.log_attention, all.position));
  const std::span<double> raw = to.values("chunk_attention_pearson");
  const std::span<double> log = to.values("chunk_attention_log_pearson");
  const std::span<double> ranks = to.values("chunk_attention_spearman");
  const std::span<double> n = to.values("chunk_attention_n");
  for (std::size_t chunk = 0; chunk < n.size(); ++chunk) {
    const Index begin = static_cast<Index>(chunk) * chunk_size;
    const Pairs pairs =
        defined_pairs(chunks.similarity, log_max, {begin, std::min(begin + chunk_size, n_tokens)});
    raw[chunk] = pearson(pairs.dissimilarity, pairs.attention);
    log[chunk] = pearson(pairs.dissimilarity, pairs.log_attention);
    ranks[chunk] = spearman(pairs.dissimilarity, pairs.log_attention);
    n[chunk] = static_cast<double>(pairs.attention.size());
  }
}

void store_classes(const HeadPlace& to, const HeadChunks& chunks,
                   const std::vector<ClassAttention>& classes, Index n_sinks) {
  VectorD similarity = VectorD::Zero(n_similarity_classes);
  for (std::size_t row = 0; row < chunks.classes.size(); ++row) {
    similarity[chunks.classes[row]] += chunks.similarity[static_cast<Index>(row)];
  }
  const std::span<double> key_share = to.values("class_key_share");
  const std::span<double> top = to.values("class_top_share");
  const Index n_bins = std::ssize(key_share) / std::ssize(classes);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const ClassAttention& attention = classes[i];
    const auto n_rows = static_cast<double>(attention.n_rows);
    const auto n_spread = static_cast<double>(attention.n_spread);
    to.values("class_n_queries")[i] = n_rows;
    to.values("class_similarity")[i] = mean_of(similarity[static_cast<Index>(i)], n_rows);
    to.values("class_sink_share")[i] = mean_of(attention.sink_share, n_rows);
    to.values("class_effective_keys")[i] = mean_of(attention.effective_keys, n_spread);
    to.values("class_effective_share")[i] = mean_of(attention.effective_share, n_spread);
    const Index n_keys = attention.on_keys.size();
    for (Index bin = 0; bin < n_bins; ++bin) {
      const Index begin = bin_begin(bin, n_keys, n_bins);
      const Index size = bin_begin(bin + 1, n_keys, n_bins) - begin;
      key_share[i * static_cast<std::size_t>(n_bins) + static_cast<std::size_t>(bin)] =
          mean_of(attention.on_keys.segment(begin, size).sum(), n_rows);
    }
    for (std::size_t p = 0; p < top_percents.size() && n_keys > n_sinks; ++p) {
      top[i * top_percents.size() + p] =
          top_share(attention.on_keys.tail(n_keys - n_sinks), top_percents[p]);
    }
  }
}

void store_tails(const HeadPlace& to, const std::string& over, const DeviationStatistics& tails) {
  to.set("score_n_over_" + over, tails.n_scores());
  to.set("score_spread_over_" + over, tails.spread());
  to.set("score_skewness_over_" + over, tails.skewness());
  to.set("score_kurtosis_over_" + over, tails.excess_kurtosis());
  to.set("score_top_share_over_" + over, tails.top_share());
  std::ranges::copy(tails.histogram(), to.values("score_deviation_over_" + over).begin());
}

void store_theorem(const HeadPlace& to, const TheoremCheck& check) {
  to.set("theorem_n_triples", check.n_triples);
  to.set("theorem_applies_share", mean_of(check.n_applies, check.n_triples));
  to.set("theorem_key_negative_share", mean_of(check.n_key_negative, check.n_triples));
  to.set("theorem_applies_similarity", mean_of(check.applies_similarity, check.n_applies));
  store_bound(to, "paper_bound", check.paper, check);
  store_bound(to, "spherical_bound", check.spherical, check);
}

void store_pca(const HeadPlace& to, const std::string& of, const Pca& pca) {
  const std::span<double> basis = to.values(of + "_pca_basis");
  const std::size_t n_channels = basis.size() / static_cast<std::size_t>(n_components);
  for (Index i = 0; i < stored_components(pca); ++i) {
    const auto place = static_cast<std::size_t>(i);
    to.values(of + "_pca_variance")[place] = pca.variances[i];
    to.values(of + "_pca_share")[place] = mean_of(pca.variances[i], pca.variances.sum());
    to.values(of + "_pca_near_equal")[place] = pca.near_equal[place] ? 1 : 0;
    std::ranges::copy(pca.basis.row(i), basis.subspan(place * n_channels).begin());
  }
}

void store_coordinates(const HeadPlace& to, const std::string& name, const Pca& pca,
                       const ConstMatrixView& block, const std::vector<Index>& rows) {
  const std::span<double> target = to.values(name);
  const Matrix sampled = block(rows, Eigen::all);
  const MatrixD coordinates = pca_coordinates(pca, view(sampled), stored_components(pca));
  for (Index i = 0; i < coordinates.rows(); ++i) {
    std::ranges::copy(coordinates.row(i),
                      target.subspan(static_cast<std::size_t>(i * n_components)).begin());
  }
}

void store_queries(const HeadPlace& to, const ConstMatrixView& q, const HeadChunks& chunks,
                   const VectorD& log_max, const std::vector<Index>& samples) {
  to.set("query_norm_mean", chunks.norms.mean());
  to.set("query_norm_min", chunks.norms.minCoeff());
  to.set("query_norm_max", chunks.norms.maxCoeff());
  to.set("query_concentration", mean_of(sum_of_rows(q).norm(), chunks.norms.sum()));
  const VectorD dissimilarity = -chunks.similarity;
  const VectorD position = VectorD::LinSpaced(q.rows(), 0, static_cast<double>(q.rows() - 1));
  to.set("similarity_position_spearman", spearman(numbers(dissimilarity), numbers(position)));
  to.set("similarity_norm_spearman", spearman(numbers(dissimilarity), numbers(chunks.norms)));
  store_binned(to.values("similarity_by_position"), chunks.similarity);
  const std::span<double> similarity = to.values("query_similarity");
  const std::span<double> attention = to.values("query_log_max_attention");
  const std::span<double> norm = to.values("query_norm");
  const std::span<double> kept = to.values("query_kept");
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Index row = samples[i];
    similarity[i] = chunks.similarity[row];
    attention[i] = log_max[row];
    norm[i] = chunks.norms[row];
    kept[i] = chunks.kept[static_cast<std::size_t>(row)] ? 1 : 0;
  }
}

void store_key_similarity(const HeadPlace& to, const ConstMatrixView& q, const ConstMatrixView& k,
                          const VectorD& similarity) {
  const VectorD mean_key = sum_of_rows(k).normalized();
  std::vector<double> dissimilarity;
  std::vector<double> to_keys;
  for (Index row = 0; row < q.rows(); ++row) {
    const VectorD query = q.row(row).cast<double>().transpose().normalized();
    dissimilarity.push_back(-similarity[row]);
    to_keys.push_back(query.dot(mean_key));
  }
  to.set("similarity_key_spearman", spearman(dissimilarity, to_keys));
}

void store_keys(const HeadPlace& to, const GroupChunks& chunks, Index n_sinks,
                const std::vector<Index>& samples) {
  const VectorD others = chunks.key_norms.tail(chunks.key_norms.size() - n_sinks);
  if (others.size() > 0) {
    to.set("key_norm_mean", others.mean());
    to.set("key_norm_min", others.minCoeff());
    to.set("key_norm_max", others.maxCoeff());
  }
  to.set("key_norm_sink_mean",
         mean_of(chunks.key_norms.head(n_sinks).sum(), static_cast<double>(n_sinks)));
  const std::span<double> norm = to.values("key_norm");
  const std::span<double> kept_share = to.values("key_kept_share");
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Index key = samples[i];
    norm[i] = chunks.key_norms[key];
    kept_share[i] = mean_of(chunks.n_kept[key], chunks.n_competed[key]);
  }
}

}  // namespace quoka
