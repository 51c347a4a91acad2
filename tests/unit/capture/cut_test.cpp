#include "quoka/capture/cut.hpp"

#include <cmath>

#include "quoka/capture/verify.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/half.hpp"
#include "quoka/core/sha256.hpp"
#include "support/bits.hpp"
#include "support/catch.hpp"
#include "support/raw_hdf5.hpp"
#include "support/temp_dir.hpp"
#include "support/tiny.hpp"

namespace quoka {
namespace {

using namespace test;

const std::filesystem::path embedded = std::string(QUOKA_DATA_DIR) + "/smollm2-135m_needles_2k.h5";

}  // namespace

TEST_CASE("a cut keeps heads and rows and everything that they saw", "[capture][cut]") {
  const TempDir directory;
  write_tiny_capture(directory / "tiny.h5", {tiny_layer(0), tiny_layer(1)});
  const CaptureReader whole(directory / "tiny.h5");
  CutOptions options;
  options.layers = {1};
  options.kv_heads = {1};
  options.tokens = IndexRange{3, 6};
  cut_capture(whole, directory / "cut.h5", options);

  const CaptureReader cut(directory / "cut.h5");
  REQUIRE(cut.layers().size() == 1);
  const CaptureLayer& layer = cut.layer(1);
  CHECK(layer.shape == AttentionShape{2, 1, 3, 6, 3, 2});
  CHECK(layer.rules.q_offset == 3);
  CHECK(layer.rules.sinks == std::vector<float>{2.0F, 0.0F});
  for (Index head = 0; head < 2; ++head) {
    for (const Tensor tensor : {Tensor::q, Tensor::out}) {
      // The tiny capture begins at position 2, so position 3 is its row 1.
      CHECK(same_bits(cut.read_rows(1, tensor, head, {0, 3}),
                      whole.read_rows(1, tensor, head + 2, {1, 4})));
    }
    CHECK(cut.read_lse(1, head, {0, 3}) == whole.read_lse(1, head + 2, {1, 4}));
  }
  for (const Tensor tensor : {Tensor::k, Tensor::v}) {
    CHECK(same_bits(cut.read_rows(1, tensor, 0, {0, 6}), whole.read_rows(1, tensor, 1, {0, 6})));
  }
  CHECK(cut.tokens().ids == std::vector<std::int32_t>{11, 12, 13, 14, 15, 16});
  REQUIRE(cut.annotations().size() == 1);  // the question ends behind the cut
  CHECK(cut.annotations()[0] == whole.annotations()[0]);
}

TEST_CASE("a cut of a real capture still passes", "[capture][cut]") {
  const TempDir directory;
  const CaptureReader whole(embedded);
  CutOptions options;
  options.layers = {18};
  options.kv_heads = {2, 0};
  options.tokens = IndexRange{300, 500};
  cut_capture(whole, directory / "cut.h5", options);
  const VerifyReport report = verify_capture(CaptureReader(directory / "cut.h5"), 2);
  CHECK(report.verdict == Verdict::passed);
  CHECK(report.layers.at(0).heads.size() == 6);
}

TEST_CASE("P12 every bfloat16 pattern survives a cut bit by bit", "[capture][cut]") {
  const TempDir directory;
  CaptureLayer layer = tiny_layer();
  layer.storage = StorageType::bfloat16;
  layer.has_out = layer.has_lse = false;
  layer.rules.sinks.clear();
  layer.rules.q_offset = 0;
  layer.shape = {1, 1, 256, 256, 256, 256};
  CaptureTokens tokens;
  for (std::int32_t i = 0; i < 256; ++i) {
    tokens.ids.push_back(i);
    tokens.positions.push_back(i);
  }
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    patterns[i] = static_cast<std::uint16_t>(i);
  }
  Matrix values(256, 256);
  widen_bfloat16(patterns, {values.data(), patterns.size()});
  CaptureWriter writer(directory / "all.h5", tiny_info(), tokens);
  writer.add_layer(layer);
  for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v}) {
    writer.write_rows(tensor, 0, {0, 256}, values);
  }
  writer.commit();
  cut_capture(CaptureReader(directory / "all.h5"), directory / "cut.h5", {});

  const std::string expected = sha256_hex({reinterpret_cast<const char*>(patterns.data()), 131072});
  for (const TensorChecksum& tensor : tensor_checksums(CaptureReader(directory / "cut.h5"))) {
    INFO(tensor.name);
    CHECK(tensor.sha256 == expected);
  }
}

TEST_CASE("a narrower number format makes the output one of other numbers", "[capture][cut]") {
  const TempDir directory;
  write_tiny_capture(directory / "tiny.h5");
  CutOptions options;
  options.storage = StorageType::bfloat16;
  cut_capture(CaptureReader(directory / "tiny.h5"), directory / "cut.h5", options);
  const CaptureReader narrow(directory / "cut.h5");
  CHECK(narrow.info().storage_dtype == "bfloat16");
  CHECK(narrow.layer(1).out_kind == "model_native");
  CHECK(narrow.layer(1).out_storage == StorageType::float16);  // the reference stays as it was
  options.storage = StorageType::float32;
  cut_capture(CaptureReader(directory / "tiny.h5"), directory / "wide.h5", options);
  CHECK(CaptureReader(directory / "wide.h5").layer(1).out_kind == "fp32_from_stored");
}

TEST_CASE("cuts of what does not exist are refused", "[capture][cut]") {
  const TempDir directory;
  write_tiny_capture(directory / "tiny.h5");
  const CaptureReader reader(directory / "tiny.h5");
  const auto refused = [&](const CutOptions& options, const std::string& message) {
    CHECK_THROWS_AS(cut_capture(reader, directory / "cut.h5", options), ConfigError);
    CHECK_THROWS_WITH(cut_capture(reader, directory / "cut.h5", options), contains(message));
    CHECK_FALSE(std::filesystem::exists(directory / "cut.h5"));
  };
  CutOptions options;
  options.layers = {5};
  refused(options, "no layer 5");
  options = {};
  options.kv_heads = {2};
  refused(options, "none is number 2");
  options = {};
  options.tokens = IndexRange{0, 5};
  refused(options, "queries at the positions [2, 7)");
  options.tokens = IndexRange{3, 8};
  refused(options, "not [3, 8)");
  CHECK_THROWS_WITH(cut_capture(reader, directory / "tiny.h5", {}), contains("exists already"));
}

TEST_CASE("checksums are those of the stored elements", "[capture][cut]") {
  const TempDir directory;
  CaptureLayer layer = tiny_layer();
  layer.storage = StorageType::float32;
  write_tiny_capture(directory / "tiny.h5", {layer});
  std::string bytes;
  for (Index head = 0; head < 4; ++head) {
    const Matrix q = tiny_rows(layer, Tensor::q, head);
    bytes.append(reinterpret_cast<const char*>(q.data()),
                 static_cast<std::size_t>(q.size()) * sizeof(float));
  }
  const auto checksums = tensor_checksums(CaptureReader(directory / "tiny.h5"));
  REQUIRE(checksums.size() == 5);
  CHECK(checksums[0].name == "layers/001/q");
  CHECK(checksums[0].sha256 == sha256_hex(bytes));
  CHECK(checksums[4].name == "layers/001/lse");
}

}  // namespace quoka
