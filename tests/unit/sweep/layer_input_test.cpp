#include "quoka/sweep/layer_input.hpp"

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "support/tiny.hpp"

using namespace quoka;

TEST_CASE("annotations of one group are one question with its needles", "[sweep][layer_input]") {
  const std::vector<Annotation> annotations{
      {{50, 60}, AnnotationKind::question, 1, ""}, {{1, 3}, AnnotationKind::needle, 1, ""},
      {{5, 8}, AnnotationKind::needle, 1, ""},     {{10, 12}, AnnotationKind::needle, 0, ""},
      {{60, 70}, AnnotationKind::question, 2, ""}, {{70, 71}, AnnotationKind::answer, 0, ""},
      {{14, 15}, AnnotationKind::needle, -3, ""},  {{80, 90}, AnnotationKind::question, -3, ""},
      {{0, 90}, AnnotationKind::haystack, 2, ""},
  };
  const auto groups = needle_groups(annotations);
  REQUIRE(groups.size() == 2);  // 0 has no question, 2 has no needle
  CHECK(groups[0].questions == std::vector<IndexRange>{{80, 90}});
  CHECK(groups[0].needles == std::vector<IndexRange>{{14, 15}});
  CHECK(groups[1].questions == std::vector<IndexRange>{{50, 60}});
  CHECK(groups[1].needles == std::vector<IndexRange>{{1, 3}, {5, 8}});
}

TEST_CASE("a group of heads holds the tensors of its heads", "[sweep][layer_input]") {
  const test::TempDir folder;
  const CaptureLayer layer = test::tiny_layer();
  test::write_tiny_capture(folder / "t.h5", {layer});
  const CaptureReader reader(folder / "t.h5");
  const LayerInput input = layer_input(reader, layer.layer_idx);
  CHECK(input.shape == layer.shape);
  CHECK(input.rules.sinks == layer.rules.sinks);
  CHECK(input.rules.q_offset == layer.rules.q_offset);
  CHECK(input.layer_idx == layer.layer_idx);
  REQUIRE(input.needles.size() == 1);
  CHECK(input.needles[0].needles == std::vector<IndexRange>{{1, 3}});
  for (Index kv_head = 0; kv_head < 2; ++kv_head) {
    const HeadGroup group = input.load_group(kv_head);
    REQUIRE(group.q.size() == 2);
    CHECK(group.q[0] == test::tiny_rows(layer, Tensor::q, 2 * kv_head));
    CHECK(group.q[1] == test::tiny_rows(layer, Tensor::q, 2 * kv_head + 1));
    CHECK(group.k == test::tiny_rows(layer, Tensor::k, kv_head));
    CHECK(group.v == test::tiny_rows(layer, Tensor::v, kv_head));
  }
}
