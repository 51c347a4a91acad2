#include "quoka_geometry/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace quoka::apps {
namespace {

/// Values of one layer's heads that are numbers.
std::vector<double> defined(const GeometryTable& table, const std::string& name, Index layer,
                            Index n_heads) {
  std::vector<double> values;
  for (Index head = 0; head < n_heads; ++head) {
    const double value = table.head(name, layer, head)[0];
    if (!std::isnan(value)) {
      values.push_back(value);
    }
  }
  return values;
}

double sum(const std::vector<double>& values) {
  double total = 0;
  for (const double value : values) {
    total += value;
  }
  return total;
}

double mean(const std::vector<double>& values) {
  return values.empty() ? std::numeric_limits<double>::quiet_NaN()
                        : sum(values) / static_cast<double>(values.size());
}

/// "0.51 (0.12 to 0.73)": mean, smallest and largest head.
std::string mean_and_range(const std::vector<double>& values) {
  if (values.empty()) {
    return "nan";
  }
  const auto [low, high] = std::ranges::minmax(values);
  return fmt::format("{:5.2f} ({:5.2f} to {:5.2f})", mean(values), low, high);
}

}  // namespace

std::string summary_table(const GeometryFile& file) {
  std::string text = fmt::format("{:>5}  {:<24} {:<24} {:>9} {:>8} {:>11} {:>8} {:>11}\n", "layer",
                                 "corr(S, ln attention)", "the same, ranks", "kurtosis", "applies",
                                 "triples", "broken", "PCA share 2");
  const GeometryTable& table = file.table;
  const std::vector<std::int64_t>& layers = table.dimension("layer").labels;
  for (Index layer = 0; layer < std::ssize(layers); ++layer) {
    const auto place = static_cast<std::size_t>(layer);
    const Index n_heads = file.layers[place].shape.n_q_heads;
    const auto of = [&](const std::string& name) { return defined(table, name, layer, n_heads); };
    double share = 0;
    for (Index head = 0; head < n_heads; ++head) {
      const auto shares = table.head("joint_pca_share", layer, head);
      share += (shares[0] + shares[1]) / static_cast<double>(n_heads);
    }
    text += fmt::format("{:>5}  {:<24} {:<24} {:>9.2f} {:>7.1f}% {:>11.0f} {:>8.0f} {:>10.1f}%\n",
                        layers[place], mean_and_range(of("similarity_attention_log_pearson")),
                        mean_and_range(of("similarity_attention_spearman")),
                        mean(of("score_kurtosis_over_queries")),
                        100 * mean(of("theorem_applies_share")), sum(of("theorem_n_triples")),
                        sum(of("paper_bound_violations")) + sum(of("spherical_bound_violations")),
                        100 * share);
  }
  return text +
         "means over the query heads (smallest to largest head); S = -cos(query, mean query); "
         "attention: largest outside the sinks;\nkurtosis: excess, of scores over kept queries; "
         "applies: triples with cos(mean query, key) < 0 < cos(query, key); broken: either bound "
         "by more than 1e-6;\nPCA share 2: variance of queries and keys on two joint components\n";
}

}  // namespace quoka::apps
