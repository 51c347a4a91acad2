#include "quoka/capture/reader.hpp"

#include <limits>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"
#include "support/temp_dir.hpp"
#include "support/tiny.hpp"

namespace quoka {
namespace {

using test::contains;
using test::near;
using test::TempDir;
using test::tiny_layer;
using test::write_tiny_capture;

std::filesystem::path real_capture() {
  return std::filesystem::path(QUOKA_DATA_DIR) / "smollm2-135m_needles_2k.h5";
}

}  // namespace

TEST_CASE("a capture gives back what was written", "[capture][reader]") {
  const TempDir directory;
  write_tiny_capture(directory / "tiny.h5", {tiny_layer(3), tiny_layer(1)});
  const CaptureReader reader(directory / "tiny.h5");
  CHECK(reader.info().model_id == "tiny");
  CHECK(reader.info().storage_dtype == "float16");
  CHECK(reader.info().config_json == "{}");
  CHECK(reader.tokens().ids == test::tiny_tokens().ids);
  REQUIRE(reader.layers().size() == 2);
  CHECK(reader.layers()[0].layer_idx == 1);  // ascending, whatever the order of writing
  const CaptureLayer& layer = reader.layer(3);
  CHECK(layer.shape == tiny_layer().shape);
  CHECK(layer.rules.scale == 0.5);
  CHECK(layer.rules.q_offset == 2);
  CHECK(layer.rules.sinks == tiny_layer().rules.sinks);
  CHECK(layer.has_out);
  const std::vector<Annotation> annotations(reader.annotations().begin(),
                                            reader.annotations().end());
  CHECK(annotations == test::tiny_annotations());
}

TEST_CASE("any row range of any head reads what was written there", "[capture][reader]") {
  const TempDir directory;
  write_tiny_capture(directory / "tiny.h5");
  const CaptureReader reader(directory / "tiny.h5");
  for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v, Tensor::out}) {
    const AttentionShape& shape = reader.layer(1).shape;
    for (Index head = 0; head < n_heads(shape, tensor); ++head) {
      const Matrix expected = test::tiny_rows(tiny_layer(), tensor, head);
      CHECK(reader.read_head_checked(1, tensor, head) == expected);
      CHECK(reader.read_rows(1, tensor, head, {2, 4}) == expected.middleRows(2, 2));
      CHECK(reader.read_rows(1, tensor, head, {3, 3}).rows() == 0);
    }
  }
  CHECK(reader.read_lse(1, 2, {1, 4}) == Vector::Constant(3, 2.0F));
}

TEST_CASE("rows heads and layers that do not exist are named", "[capture][reader]") {
  const TempDir directory;
  write_tiny_capture(directory / "tiny.h5");
  const CaptureReader reader(directory / "tiny.h5");
  CHECK_THROWS_AS(reader.read_rows(1, Tensor::q, 4, {0, 1}), ShapeError);
  CHECK_THROWS_AS(reader.read_rows(1, Tensor::k, 2, {0, 1}), ShapeError);
  CHECK_THROWS_AS(reader.read_rows(1, Tensor::q, 0, {0, 6}), ShapeError);
  CHECK_THROWS_AS(reader.read_rows(1, Tensor::q, 0, {-1, 2}), ShapeError);
  CHECK_THROWS_AS(reader.layer(2), ConfigError);
  CHECK_THROWS_WITH(reader.layer(2), contains("no layer 2; use one of: 1"));
}

TEST_CASE("P12 tagged integers described floats and float16 read the same values",
          "[capture][reader]") {
  const TempDir directory;
  for (const StorageType storage : {StorageType::float16, StorageType::bfloat16,
                                    StorageType::tagged_bfloat16, StorageType::float32}) {
    CaptureLayer layer = tiny_layer();
    layer.storage = storage;
    write_tiny_capture(directory / "tiny.h5", {layer});
    const CaptureReader reader(directory / "tiny.h5");
    CHECK(reader.layer(1).storage == storage);
    CHECK(reader.read_head_checked(1, Tensor::k, 1) == test::tiny_rows(layer, Tensor::k, 1));
  }
}

TEST_CASE("P12 bfloat16 keeps values outside the range of float16", "[capture][reader]") {
  const TempDir directory;
  for (const StorageType storage : {StorageType::bfloat16, StorageType::tagged_bfloat16}) {
    CaptureLayer layer;
    layer.shape = {1, 1, 2, 2, 1, 1};
    layer.storage = storage;
    Matrix values(2, 1);
    values << 1.0e30F, -1.0e-30F;
    CaptureWriter writer(directory / "big.h5", test::tiny_info(), {{1, 2}, {0, 1}, {}});
    writer.add_layer(layer);
    for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v}) {
      writer.write_rows(tensor, 0, {0, 2}, values);
    }
    writer.commit();
    const Matrix read = CaptureReader(directory / "big.h5").read_rows(0, Tensor::v, 0, {0, 2});
    // bfloat16 has 8 significant bits: rounding changes a value by at most 2^-9 of it.
    const auto report = near(read, values, 1.0 / 512, 0);
    INFO(report.message);
    CHECK(report.ok());
  }
}

TEST_CASE("v as the first columns of k is cut out of k", "[capture][reader]") {
  const TempDir directory;
  CaptureLayer layer = tiny_layer();
  layer.v_equals_k_prefix = 2;
  write_tiny_capture(directory / "mla.h5", {layer});
  const CaptureReader reader(directory / "mla.h5");
  CHECK(reader.read_rows(1, Tensor::v, 1, {0, 7}) ==
        test::tiny_rows(layer, Tensor::k, 1).leftCols(2));
}

TEST_CASE("P01 the softcap counts only where the forward pass applied it", "[capture][reader]") {
  const TempDir directory;
  CaptureLayer layer = tiny_layer();
  layer.logit_softcap = 50;
  write_tiny_capture(directory / "off.h5", {layer});
  CHECK(CaptureReader(directory / "off.h5").layer(1).rules.softcap == 0);
  CHECK(CaptureReader(directory / "off.h5").layer(1).logit_softcap == 50);
  layer.softcap_applied = true;
  write_tiny_capture(directory / "on.h5", {layer});
  CHECK(CaptureReader(directory / "on.h5").layer(1).rules.softcap == 50);
}

TEST_CASE("both spellings of ALiBi keep their slopes", "[capture][reader]") {
  const TempDir directory;
  CaptureLayer layer = tiny_layer();
  layer.rules.alibi_slopes = {0.5F, 0.25F, 0.125F, 0.0625F};
  layer.position_kind = "alibi";
  for (const Alibi alibi : {Alibi::plain, Alibi::scaled}) {
    layer.rules.alibi = alibi;
    write_tiny_capture(directory / "alibi.h5", {layer});
    const CaptureReader reader(directory / "alibi.h5");
    CHECK(reader.layer(1).rules.alibi == alibi);
    CHECK(reader.layer(1).rules.alibi_slopes == layer.rules.alibi_slopes);
  }
}

TEST_CASE("NaN and infinity are named with layer tensor head and token", "[capture][reader]") {
  const TempDir directory;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity}) {
    const CaptureLayer layer = tiny_layer();
    CaptureWriter writer(directory / "nan.h5", test::tiny_info(), test::tiny_tokens());
    CaptureLayer plain = layer;
    plain.has_out = false;
    plain.has_lse = false;
    writer.add_layer(plain);
    for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v}) {
      for (Index head = 0; head < n_heads(layer.shape, tensor); ++head) {
        Matrix values = test::tiny_rows(layer, tensor, head);
        if (tensor != Tensor::k && head == 1) {
          values(3, 1) = bad;
        }
        writer.write_rows(tensor, head, {0, values.rows()}, values);
      }
    }
    writer.commit();
    const CaptureReader reader(directory / "nan.h5");
    CHECK_NOTHROW(reader.read_head_checked(1, Tensor::q, 0));
    CHECK_NOTHROW(reader.read_head_checked(1, Tensor::k, 1));
    CHECK_THROWS_AS(reader.read_head_checked(1, Tensor::q, 1), FormatError);
    // Row 3 of q is the token at position q_offset + 3.
    CHECK_THROWS_WITH(reader.read_head_checked(1, Tensor::q, 1),
                      contains("nan.h5: layer 1, q, head 1, token 5"));
    CHECK_THROWS_WITH(reader.read_head_checked(1, Tensor::v, 1),
                      contains("layer 1, v, head 1, token 3"));
  }
}

TEST_CASE("the real capture opens and holds what its page says", "[capture][reader]") {
  const CaptureReader reader(real_capture());
  REQUIRE(reader.layers().size() == 3);
  CHECK(reader.layer(18).shape == AttentionShape{9, 3, 2016, 2016, 64, 64});
  CHECK(reader.layer(18).rules.scale == 0.125);
  CHECK(layer_kind(reader.layer(18)) == "full");
  CHECK(reader.info().num_hidden_layers == 30);
  CHECK(reader.info().prompt_text.size() == 8319);
  REQUIRE(reader.annotations().size() == 6);
  CHECK(reader.annotations()[0] == Annotation{{177, 196}, AnnotationKind::needle, 0, "violet"});
  // h5py: f["layers/000/q"][8, 2, 5] is 1.705, the float16 nearest to which is 1.705078125.
  CHECK(reader.read_rows(0, Tensor::q, 8, {2, 3})(0, 5) == 1.705078125F);
  for (Index head = 0; head < 9; ++head) {
    CHECK_NOTHROW(reader.read_head_checked(24, Tensor::q, head));
  }
}

TEST_CASE("P14 one head of the real capture is read alone", "[capture][reader]") {
  const CaptureReader reader(real_capture());
  const Matrix whole = reader.read_head_checked(24, Tensor::v, 2);
  CHECK(whole.rows() == 2016);
  // A range across the border of two stored chunks.
  CHECK(reader.read_rows(24, Tensor::v, 2, {1000, 1100}) == whole.middleRows(1000, 100));
}

}  // namespace quoka
