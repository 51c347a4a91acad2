#include "quoka/capture/writer.hpp"

#include <iterator>

#include "quoka/capture/reader.hpp"
#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/raw_hdf5.hpp"
#include "support/temp_dir.hpp"
#include "support/tiny.hpp"

namespace quoka {
namespace {

using test::contains;
using test::raw_values;
using test::TempDir;
using test::tiny_layer;

int n_files(const std::filesystem::path& directory) {
  const std::filesystem::directory_iterator files(directory);
  return static_cast<int>(std::distance(begin(files), end(files)));
}

}  // namespace

TEST_CASE("tensors lie in the file as head then row then column", "[capture][writer]") {
  const TempDir directory;
  for (const StorageType storage :
       {StorageType::float16, StorageType::bfloat16, StorageType::float32}) {
    CaptureLayer layer = tiny_layer();
    layer.storage = storage;
    test::write_tiny_capture(directory / "tiny.h5", {layer});
    const auto values = raw_values<float>(directory / "tiny.h5", "/layers/001/k");
    REQUIRE(values.size() == 2 * 7 * 3);
    for (Index head = 0; head < 2; ++head) {
      for (Index row = 0; row < 7; ++row) {
        for (Index column = 0; column < 3; ++column) {
          CHECK(values[static_cast<std::size_t>((head * 7 + row) * 3 + column)] ==
                test::tiny_value(Tensor::k, head, row, column));
        }
      }
    }
  }
}

TEST_CASE("tagged bfloat16 stores the upper half of the float32 bits", "[capture][writer]") {
  const TempDir directory;
  CaptureLayer layer = tiny_layer();
  layer.storage = StorageType::tagged_bfloat16;
  test::write_tiny_capture(directory / "tiny.h5", {layer});
  const auto bits = raw_values<std::uint16_t>(directory / "tiny.h5", "/layers/001/q");
  // tiny_value(q, 0, 0, 0) = -100 / 8 = -12.5 = 0xc1480000.
  CHECK(bits[0] == 0xc148);
}

TEST_CASE("layers with sinks and lse hold them as float32", "[capture][writer]") {
  const TempDir directory;
  test::write_tiny_capture(directory / "tiny.h5");
  CHECK(raw_values<float>(directory / "tiny.h5", "/layers/001/sinks") == tiny_layer().rules.sinks);
  CHECK(raw_values<float>(directory / "tiny.h5", "/layers/001/lse")[5] == 1.0F);
  CHECK(raw_values<std::int64_t>(directory / "tiny.h5", "/annotations/end") ==
        std::vector<std::int64_t>{3, 7});
}

TEST_CASE("P36 a configuration text of 100 kB is a dataset", "[capture][writer]") {
  const TempDir directory;
  CaptureInfo info = test::tiny_info();
  info.config_json = std::string(100'000, 'c');
  {
    CaptureWriter writer(directory / "long.h5", info, test::tiny_tokens());
    CaptureLayer layer = tiny_layer();
    layer.has_out = false;
    layer.has_lse = false;
    writer.add_layer(layer);
    for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v}) {
      for (Index head = 0; head < n_heads(layer.shape, tensor); ++head) {
        writer.write_rows(tensor, head, {0, n_rows(layer.shape, tensor)},
                          test::tiny_rows(layer, tensor, head));
      }
    }
    writer.commit();
  }
  CHECK(raw_values<std::uint8_t>(directory / "long.h5", "/meta/config_json").size() == 100'000);
  CHECK(CaptureReader(directory / "long.h5").info().config_json == info.config_json);
}

TEST_CASE("without a commit nothing is left", "[capture][writer]") {
  const TempDir directory;
  {
    CaptureWriter writer(directory / "tiny.h5", test::tiny_info(), test::tiny_tokens());
    writer.add_layer(tiny_layer());
    CHECK(n_files(directory.path()) == 1);  // the temporary file
    CHECK_FALSE(std::filesystem::exists(directory / "tiny.h5"));
  }
  CHECK(n_files(directory.path()) == 0);
}

TEST_CASE("an incomplete layer cannot be committed", "[capture][writer]") {
  const TempDir directory;
  CaptureWriter writer(directory / "tiny.h5", test::tiny_info(), test::tiny_tokens());
  writer.add_layer(tiny_layer());
  writer.write_rows(Tensor::q, 0, {0, 5}, test::tiny_rows(tiny_layer(), Tensor::q, 0));
  CHECK_THROWS_AS(writer.commit(), ShapeError);
  CHECK_THROWS_WITH(writer.commit(), contains("15 of 60 elements were written"));
  CHECK_THROWS_AS(writer.add_layer(tiny_layer(2)), ShapeError);
  CHECK_FALSE(std::filesystem::exists(directory / "tiny.h5"));
}

TEST_CASE("blocks that do not fit a tensor are refused", "[capture][writer]") {
  const TempDir directory;
  CaptureWriter writer(directory / "tiny.h5", test::tiny_info(), test::tiny_tokens());
  CHECK_THROWS_AS(writer.write_rows(Tensor::q, 0, {0, 1}, Matrix::Zero(1, 3)), ShapeError);
  writer.add_layer(tiny_layer());
  CHECK_THROWS_AS(writer.write_rows(Tensor::q, 0, {0, 2}, Matrix::Zero(1, 3)), ShapeError);
  CHECK_THROWS_AS(writer.write_rows(Tensor::q, 0, {0, 1}, Matrix::Zero(1, 2)), ShapeError);
  CHECK_THROWS_AS(writer.write_rows(Tensor::q, 4, {0, 1}, Matrix::Zero(1, 3)), ShapeError);
  CHECK_THROWS_AS(writer.write_rows(Tensor::q, 0, {5, 6}, Matrix::Zero(1, 3)), ShapeError);
}

TEST_CASE("a value too large for float16 is refused and not stored as infinity",
          "[capture][writer]") {
  const TempDir directory;
  CaptureWriter writer(directory / "tiny.h5", test::tiny_info(), test::tiny_tokens());
  writer.add_layer(tiny_layer());
  CHECK_THROWS_AS(writer.write_rows(Tensor::q, 0, {0, 1}, Matrix::Constant(1, 3, 70'000.0F)),
                  ConfigError);
  CHECK_NOTHROW(writer.write_rows(Tensor::q, 0, {0, 1}, Matrix::Constant(1, 3, 65'504.0F)));
}

TEST_CASE("layers that do not fit together are refused", "[capture][writer]") {
  const TempDir directory;
  CaptureWriter writer(directory / "tiny.h5", test::tiny_info(), test::tiny_tokens());
  CaptureLayer layer = tiny_layer();
  layer.shape.n_keys = 8;
  CHECK_THROWS_AS(writer.add_layer(layer), ShapeError);
  layer = tiny_layer();
  layer.shape.n_kv_heads = 3;
  CHECK_THROWS_AS(writer.add_layer(layer), ShapeError);
  layer = tiny_layer();
  layer.rules.sinks.pop_back();
  CHECK_THROWS_AS(writer.add_layer(layer), ShapeError);
}

TEST_CASE("a full disk leaves neither the capture nor a temporary file", "[capture][writer]") {
  const TempDir directory;
  const int code = test::exit_code_with_file_limit(20'000, [&] {
    try {
      CaptureLayer layer;
      layer.shape = {1, 1, 7, 7, 4096, 4096};
      CaptureWriter writer(directory / "big.h5", test::tiny_info(), test::tiny_tokens());
      writer.add_layer(layer);
      for (const Tensor tensor : {Tensor::q, Tensor::k, Tensor::v}) {
        writer.write_rows(tensor, 0, {0, 7}, Matrix::Ones(7, 4096));
      }
      writer.commit();
    } catch (const IoError&) {
      return 7;
    }
    return 8;
  });
  CHECK(code == 7);
  CHECK(n_files(directory.path()) == 0);
}

}  // namespace quoka
