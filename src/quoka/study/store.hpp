#pragma once

/// How measurements of one head become values of the table.

#include <span>
#include <string>
#include <vector>

#include "quoka/geometry/pca.hpp"
#include "quoka/study/attention_pass.hpp"
#include "quoka/study/chunk_pass.hpp"
#include "quoka/study/table.hpp"
#include "quoka/study/theorem_pass.hpp"

namespace quoka {

/// The place of one query or KV head in the table.
class HeadPlace {
 public:
  HeadPlace(GeometryTable& table, Index layer, Index head)
      : table_(table), layer_(layer), head_(head) {}

  void set(const std::string& name, double value) const { table_.set(name, layer_, head_, value); }
  [[nodiscard]] std::span<double> values(const std::string& name) const {
    return table_.head(name, layer_, head_);
  }

 private:
  GeometryTable& table_;
  Index layer_;
  Index head_;
};

/// Correlations of S = -similarity with the largest attention outside the sinks, over all rows and
/// per chunk. Rows without such attention (NaN) are left out.
void store_correlations(const HeadPlace& to, const HeadChunks& chunks, const VectorD& log_max,
                        Index chunk_size);

/// Where the queries of each class look. n_sinks: leading keys that do not count.
void store_classes(const HeadPlace& to, const HeadChunks& chunks,
                   const std::vector<ClassAttention>& classes, Index n_sinks);

/// over: "queries" or "heads".
void store_tails(const HeadPlace& to, const std::string& over, const DeviationStatistics& tails);

void store_theorem(const HeadPlace& to, const TheoremCheck& check);

/// of: "joint", "query" or "key".
void store_pca(const HeadPlace& to, const std::string& of, const Pca& pca);

/// Coordinates of these rows of the block, as the variable of that name.
void store_coordinates(const HeadPlace& to, const std::string& name, const Pca& pca,
                       const ConstMatrixView& block, const std::vector<Index>& rows);

/// Norms, position effects and the samples of the queries.
void store_queries(const HeadPlace& to, const ConstMatrixView& q, const HeadChunks& chunks,
                   const VectorD& log_max, const std::vector<Index>& samples);

/// Whether queries far from the mean query are nearer to the keys: the paper's figure 2b.
void store_key_similarity(const HeadPlace& to, const ConstMatrixView& q, const ConstMatrixView& k,
                          const VectorD& similarity);

/// Norms and samples of the keys of a KV head.
void store_keys(const HeadPlace& to, const GroupChunks& chunks, Index n_sinks,
                const std::vector<Index>& samples);

}  // namespace quoka
