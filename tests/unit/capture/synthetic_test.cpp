#include "quoka/capture/synthetic.hpp"

#include <cmath>

#include "quoka/capture/reader.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/sha256.hpp"
#include "support/catch.hpp"
#include "support/near.hpp"
#include "support/temp_dir.hpp"

namespace quoka {
namespace {

using test::TempDir;

SyntheticOptions small_options() {
  SyntheticOptions options;
  options.n_q_heads = 4;
  options.n_kv_heads = 2;
  options.n_tokens = 400;
  options.k_head_dim = 32;
  options.v_head_dim = 16;
  options.seed = 5;
  return options;
}

// Share of a query's attention on a range of keys, from the definition, in double.
double attention_share(const SyntheticOptions& options, Index token, IndexRange keys) {
  const double scale = synthetic_layer(options, 0).rules.scale;
  const MatrixD q = synthetic_rows(options, 0, Tensor::q, 1, {token, token + 1}).cast<double>();
  const MatrixD k = synthetic_rows(options, 0, Tensor::k, 0, {0, token + 1}).cast<double>();
  double inside = 0;
  double all = 0;
  for (Index key = 0; key <= token; ++key) {
    double logit = 0;
    for (Index column = 0; column < k.cols(); ++column) {
      logit += scale * k(key, column) * q(0, column);
    }
    const double weight = std::exp(logit);
    all += weight;
    inside += keys.contains(key) ? weight : 0;
  }
  return inside / all;
}

}  // namespace

TEST_CASE("a synthetic capture is a valid capture with the asked layers", "[capture][synthetic]") {
  const TempDir directory;
  SyntheticOptions options = small_options();
  options.n_layers = 2;
  options.rules.q_offset = 100;
  options.rules.sliding_window = 64;
  options.rules.softcap = 30;
  options.with_sinks = true;
  options.alibi = Alibi::scaled;
  options.storage = StorageType::bfloat16;
  write_synthetic_capture(directory / "s.h5", options);
  const CaptureReader reader(directory / "s.h5");
  REQUIRE(reader.layers().size() == 2);
  const CaptureLayer& layer = reader.layer(1);
  CHECK(layer.shape == AttentionShape{4, 2, 400, 500, 32, 16});
  CHECK(layer.rules.sliding_window == 64);
  CHECK(layer.rules.softcap == 30);
  CHECK(layer.rules.sinks.size() == 4);
  CHECK(layer.rules.alibi == Alibi::scaled);
  CHECK(layer.rules.alibi_slopes[3] == 1.0F / 256);  // 2^(-8 * 4 / 4)
  CHECK(layer_kind(layer) == "window");
  CHECK(reader.annotations().size() == 2);
}

TEST_CASE("rows do not depend on the block they are made in", "[capture][synthetic]") {
  const SyntheticOptions options = small_options();
  for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v}) {
    const Matrix whole = synthetic_rows(options, 0, tensor, 1, {0, 400});
    CHECK(synthetic_rows(options, 0, tensor, 1, {37, 99}) == whole.middleRows(37, 62));
  }
}

TEST_CASE("a query has the same values at the same position under any offset",
          "[capture][synthetic]") {
  SyntheticOptions all = small_options();
  SyntheticOptions last = all;
  last.n_tokens = 100;
  last.rules.q_offset = 300;
  CHECK(synthetic_rows(last, 0, Tensor::q, 2, {0, 100}) ==
        synthetic_rows(all, 0, Tensor::q, 2, {300, 400}));
}

TEST_CASE("the same options give the same bytes and another seed other ones",
          "[capture][synthetic]") {
  const TempDir directory;
  SyntheticOptions options = small_options();
  write_synthetic_capture(directory / "a.h5", options);
  write_synthetic_capture(directory / "b.h5", options);
  CHECK(sha256_of_file(directory / "a.h5") == sha256_of_file(directory / "b.h5"));
  options.seed = 6;
  write_synthetic_capture(directory / "c.h5", options);
  CHECK(sha256_of_file(directory / "a.h5") != sha256_of_file(directory / "c.h5"));
}

TEST_CASE("heads and layers differ", "[capture][synthetic]") {
  const SyntheticOptions options = small_options();
  const Matrix first = synthetic_rows(options, 0, Tensor::k, 0, {0, 10});
  CHECK(first != synthetic_rows(options, 0, Tensor::k, 1, {0, 10}));
  CHECK(first != synthetic_rows(options, 1, Tensor::k, 0, {0, 10}));
}

TEST_CASE("the question attends its needle and typical queries attend the sinks",
          "[capture][synthetic]") {
  const SyntheticOptions options = small_options();
  const std::vector<Annotation> annotations = synthetic_annotations(options);
  REQUIRE(annotations.size() == 2);
  const IndexRange needle = annotations[0].tokens;
  CHECK(annotations[0].kind == AnnotationKind::needle);
  CHECK(annotations[1].tokens == IndexRange{384, 400});
  double on_needle = 0;
  double on_sinks = 0;
  double typical_on_needle = 0;
  for (Index i = 0; i < 16; ++i) {
    on_needle += attention_share(options, 384 + i, needle) / 16;
    on_sinks += attention_share(options, 300 + i, {0, 4}) / 16;
    typical_on_needle += attention_share(options, 300 + i, needle) / 16;
  }
  // Planted logits are 12 (needle, 8 keys) and 8 (sinks, 4 keys) above a noise of about 1 over 400
  // keys: shares near 8 e^12 / (8 e^12 + 400 e^0.5) and 4 e^8 / (4 e^8 + 400 e^0.5); the bounds
  // leave room for outlier queries and for the noise.
  CHECK(on_needle > 0.9);
  CHECK(on_sinks > 0.6);
  CHECK(typical_on_needle < 0.1);
}

TEST_CASE("logits do not depend on the scale", "[capture][synthetic]") {
  SyntheticOptions options = small_options();
  const Matrix q = synthetic_rows(options, 0, Tensor::q, 0, {0, 4});
  options.rules.scale = 1.0;
  const Matrix q_unscaled = synthetic_rows(options, 0, Tensor::q, 0, {0, 4});
  // Each side is one rounding to float32, of the value times sqrt(32) times its scale.
  const Matrix scaled = q / std::sqrt(32.0F);
  const auto report = test::near(scaled, q_unscaled, std::ldexp(1.0, -22), 0);
  INFO(report.message);
  CHECK(report.ok());
}

TEST_CASE("sizes that do not fit are refused before a file exists", "[capture][synthetic]") {
  const TempDir directory;
  SyntheticOptions options = small_options();
  options.n_kv_heads = 3;
  CHECK_THROWS_AS(write_synthetic_capture(directory / "s.h5", options), ConfigError);
  options = small_options();
  options.n_tokens = 0;
  CHECK_THROWS_AS(write_synthetic_capture(directory / "s.h5", options), ConfigError);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("a single token is a capture without annotations", "[capture][synthetic]") {
  const TempDir directory;
  SyntheticOptions options = small_options();
  options.n_tokens = 1;
  write_synthetic_capture(directory / "s.h5", options);
  const CaptureReader reader(directory / "s.h5");
  CHECK(reader.layer(0).shape.n_keys == 1);
  CHECK(reader.annotations().empty());
}

}  // namespace quoka
