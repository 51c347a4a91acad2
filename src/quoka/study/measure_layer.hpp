#pragma once

#include <functional>

#include "quoka/replay/replay.hpp"
#include "quoka/study/settings.hpp"
#include "quoka/study/table.hpp"

namespace quoka {

/// Positions that a study looks at one by one; the same in all layers and heads.
struct StudySamples {
  std::vector<Index> queries;  ///< rows of q, ascending
  std::vector<Index> keys;     ///< absolute positions, ascending
};

/// Samples of a layer with these sizes.
StudySamples study_samples(const AttentionShape& shape, const StudySettings& settings);

/// Measures every head of a layer into its place of the table.
///
/// before_head is called before each head, from any thread, one at a time; an exception from it
/// ends the study (this is how it is interrupted). Results do not depend on n_threads.
///
/// Cost: O(n_tokens * n_keys * head_dim) per query head. Memory: one KV head's tensors (or as many
/// as keep all threads busy), 64 rows of attention per thread, O(n_samples * head_dim).
/// Throws: what load_group and before_head throw; FormatError if a logit is not finite.
void measure_layer(const LayerInput& layer, Index place, const StudySettings& settings,
                   const StudySamples& samples, GeometryTable& table,
                   const std::function<void()>& before_head = {});

}  // namespace quoka
