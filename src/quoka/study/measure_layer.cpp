#include "quoka/study/measure_layer.hpp"

#include <algorithm>
#include <mutex>

#include "quoka/core/parallel.hpp"
#include "quoka/study/store.hpp"

namespace quoka {
namespace {

/// One KV head whose tensors are in memory.
struct LoadedGroup {
  GroupView group;
  GroupChunks chunks;
};

/// The study of one layer; what its heads share.
struct LayerStudy {
  const LayerInput& layer;
  Index place;
  const StudySettings& settings;
  const StudySamples& samples;
  GeometryTable& table;

  [[nodiscard]] Index chunk_size() const { return settings.rows_per_chunk(layer.shape.n_tokens); }
  [[nodiscard]] Index n_sinks() const { return std::min(settings.sink_size, layer.shape.n_keys); }
};

void measure_kv_head(const LayerStudy& study, LoadedGroup& loaded) {
  loaded.chunks =
      measure_chunks(loaded.group, study.layer.rules, study.settings, study.samples.keys);
  const HeadPlace to(study.table, study.place, loaded.group.kv_head);
  store_keys(to, loaded.chunks, study.n_sinks(), study.samples.keys);
  store_tails(to, "heads", loaded.chunks.over_heads);
  const ConstMatrixView& k = loaded.group.k;
  const Pca pca = principal_components(std::span(&k, 1));
  store_pca(to, "key", pca);
  store_coordinates(to, "key_coordinates", pca, k, study.samples.keys);
}

void measure_q_head(const LayerStudy& study, const LoadedGroup& loaded, Index head) {
  const GroupView& group = loaded.group;
  const ConstMatrixView& q = group.q[static_cast<std::size_t>(head)];
  const HeadChunks& chunks = loaded.chunks.heads[static_cast<std::size_t>(head)];
  const HeadPlace to(study.table, study.place, group.q_head(head));
  const AttentionRules& rules = study.layer.rules;
  const HeadAttention attention = measure_attention(group, head, rules, study.settings.sink_size,
                                                    chunks.classes, n_similarity_classes);
  store_correlations(to, chunks, attention.log_max, study.chunk_size());
  store_classes(to, chunks, attention.classes, study.n_sinks());
  store_tails(to, "queries", chunks.over_queries);
  store_theorem(to, check_theorem(q, group.k, rules, study.chunk_size(), study.samples.queries,
                                  study.samples.keys));
  store_queries(to, q, chunks, attention.log_max, study.samples.queries);
  store_key_similarity(to, q, group.k, chunks.similarity);
  const Pca of_queries = principal_components(std::span(&q, 1));
  store_pca(to, "query", of_queries);
  store_coordinates(to, "query_coordinates", of_queries, q, study.samples.queries);
  const std::vector<ConstMatrixView> both{q, group.k};
  const Pca joint = principal_components(both);
  store_pca(to, "joint", joint);
  store_coordinates(to, "joint_query_coordinates", joint, q, study.samples.queries);
  store_coordinates(to, "joint_key_coordinates", joint, group.k, study.samples.keys);
}

}  // namespace

StudySamples study_samples(const AttentionShape& shape, const StudySettings& settings) {
  return {.queries = sample_positions(shape.n_tokens, settings, 0),
          .keys = sample_positions(shape.n_keys, settings, 1)};
}

void measure_layer(const LayerInput& layer, Index place, const StudySettings& settings,
                   const StudySamples& samples, GeometryTable& table,
                   const std::function<void()>& before_head) {
  const LayerStudy study{layer, place, settings, samples, table};
  const Index group_size = layer.shape.group_size();
  const Index batch = (settings.n_threads + group_size - 1) / group_size;
  std::mutex mutex;
  const auto announce = [&] {
    const std::lock_guard lock(mutex);
    if (before_head) {
      before_head();
    }
  };
  for (Index first = 0; first < layer.shape.n_kv_heads; first += batch) {
    const Index n_groups = std::min(batch, layer.shape.n_kv_heads - first);
    std::vector<HeadGroup> tensors;
    for (Index i = 0; i < n_groups; ++i) {
      tensors.push_back(layer.load_group(first + i));
    }
    std::vector<LoadedGroup> groups;
    for (Index i = 0; i < n_groups; ++i) {
      groups.push_back({group_view(tensors[static_cast<std::size_t>(i)], first + i), {}});
    }
    parallel_for(n_groups, settings.n_threads, [&](Index i, int) {
      measure_kv_head(study, groups[static_cast<std::size_t>(i)]);
    });
    parallel_for(n_groups * group_size, settings.n_threads, [&](Index i, int) {
      announce();
      measure_q_head(study, groups[static_cast<std::size_t>(i / group_size)], i % group_size);
    });
  }
}

}  // namespace quoka
