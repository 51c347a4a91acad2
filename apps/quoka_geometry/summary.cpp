#include "quoka_geometry/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "quoka/study/chunk_pass.hpp"

namespace quoka::apps {
namespace {

/// One element of a variable for each of a layer's heads, where it is a number.
std::vector<double> defined(const GeometryTable& table, const std::string& name, Index layer,
                            Index n_heads, std::size_t element) {
  std::vector<double> values;
  for (Index head = 0; head < n_heads; ++head) {
    const double value = table.head(name, layer, head)[element];
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
  std::string text = fmt::format("{:>5}  {:<22} {:<22} {:>6} {:>13} {:>8} {:>8} {:>12} {:>6}\n",
                                 "layer", "S and ln attention", "the same, ranks", "keys", "spread",
                                 "kurtosis", "applies", "triples", "broken");
  const GeometryTable& table = file.table;
  const std::vector<std::int64_t>& layers = table.dimension("layer").labels;
  for (Index layer = 0; layer < std::ssize(layers); ++layer) {
    const auto place = static_cast<std::size_t>(layer);
    const Index n_heads = file.layers[place].shape.n_q_heads;
    const auto of = [&](const std::string& name, std::size_t element = 0) {
      return defined(table, name, layer, n_heads, element);
    };
    const std::string spread =
        fmt::format("{:.1f}%, {:.1f}%", 100 * mean(of("class_effective_share")),
                    100 * mean(of("class_effective_share", n_similarity_classes - 1)));
    text += fmt::format(
        "{:>5}  {:<22} {:<22} {:>6.2f} {:>13} {:>8.2f} {:>7.1f}% {:>12.0f} {:>6.0f}\n",
        layers[place], mean_and_range(of("similarity_attention_log_pearson")),
        mean_and_range(of("similarity_attention_spearman")), mean(of("similarity_key_spearman")),
        spread, mean(of("score_kurtosis_over_queries")), 100 * mean(of("theorem_applies_share")),
        sum(of("theorem_n_triples")),
        sum(of("paper_bound_violations")) + sum(of("spherical_bound_violations")));
  }
  return text +
         "means over the query heads (smallest to largest head); S = -cos(query, mean query)\n"
         "S and ln attention: correlation with the largest attention outside the sinks (figure "
         "2c)\n"
         "keys: rank correlation of S with cos(query, mean key) (2b)\n"
         "spread: share of its keys that a query of the lowest, and of the highest, eighth by "
         "cosine "
         "with the mean query spreads over (2a)\n"
         "kurtosis: excess, of the kept queries' scores of a key (3)\n"
         "applies: triples with cos(mean query, key) < 0 < cos(query, key); broken: either bound "
         "by "
         "more than 1e-6 (theorem 1)\n";
}

}  // namespace quoka::apps
