#include "quoka/sweep/layer_input.hpp"

#include <map>

namespace quoka {

std::vector<NeedleGroup> needle_groups(std::span<const Annotation> annotations) {
  std::map<std::int32_t, NeedleGroup> by_number;
  for (const Annotation& annotation : annotations) {
    if (annotation.kind == AnnotationKind::needle) {
      by_number[annotation.group].needles.push_back(annotation.tokens);
    } else if (annotation.kind == AnnotationKind::question) {
      by_number[annotation.group].questions.push_back(annotation.tokens);
    }
  }
  std::vector<NeedleGroup> groups;
  for (auto& [number, group] : by_number) {
    if (!group.questions.empty() && !group.needles.empty()) {
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

LayerInput layer_input(const CaptureReader& reader, Index layer_idx) {
  const CaptureLayer& layer = reader.layer(layer_idx);
  LayerInput input;
  input.shape = layer.shape;
  input.rules = layer.rules;
  input.layer_idx = layer_idx;
  input.needles = needle_groups(reader.annotations());
  input.load_group = [&reader, shape = layer.shape, layer_idx](Index kv_head) {
    HeadGroup group;
    const Index size = shape.group_size();
    for (Index head = kv_head * size; head < (kv_head + 1) * size; ++head) {
      group.q.push_back(reader.read_head_checked(layer_idx, Tensor::q, head));
    }
    group.k = reader.read_head_checked(layer_idx, Tensor::k, kv_head);
    group.v = reader.read_head_checked(layer_idx, Tensor::v, kv_head);
    return group;
  };
  input.other_layer = [&reader](Index other_idx) { return layer_input(reader, other_idx); };
  return input;
}

}  // namespace quoka
