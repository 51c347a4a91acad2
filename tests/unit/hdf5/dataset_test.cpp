#include "quoka/hdf5/dataset.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include "quoka/core/atomic_file.hpp"
#include "quoka/core/error.hpp"
#include "quoka/hdf5/file.hpp"
#include "support/catch.hpp"
#include "support/raw_hdf5.hpp"
#include "support/temp_dir.hpp"

namespace quoka {
namespace {

using test::contains;
using test::TempDir;

template <typename T>
void check_round_trip(ElementType type, const std::vector<T>& values) {
  const Hdf5File file = Hdf5File::create_in_memory();
  const Hdf5Group root = file.root();
  root.create_dataset("x", type, {std::ssize(values)}).write(std::span<const T>(values));
  const Hdf5Dataset read = root.dataset("x");
  CHECK(read.info().type == type);
  CHECK(read.read<T>() == values);
}

}  // namespace

TEST_CASE("every element type keeps its extreme values", "[hdf5][dataset]") {
  check_round_trip<float>(ElementType::float32, {1e-45F, -3.4e38F});
  check_round_trip<double>(ElementType::float64, {5e-324, -1.7e308});
  check_round_trip<std::int64_t>(ElementType::int64, {INT64_MIN, INT64_MAX});
  check_round_trip<std::int32_t>(ElementType::int32, {INT32_MIN, INT32_MAX});
  check_round_trip<std::uint32_t>(ElementType::uint32, {0, UINT32_MAX});
  check_round_trip<std::uint16_t>(ElementType::uint16, {0, UINT16_MAX});
  check_round_trip<std::uint8_t>(ElementType::uint8, {0, UINT8_MAX});
}

TEST_CASE("P12 every 16-bit pattern passes through both float types unchanged", "[hdf5][dataset]") {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint16_t>(i);
  }
  for (const ElementType type : {ElementType::float16, ElementType::bfloat16}) {
    const Hdf5File file = Hdf5File::create_in_memory();
    const Hdf5Group root = file.root();
    root.create_dataset("x", type, {65536})
        .write_raw({{0}, {65536}}, std::as_bytes(std::span(bits)));
    const Hdf5Dataset stored = root.dataset("x");
    CHECK(stored.info().type == type);
    std::vector<std::uint16_t> read(bits.size());
    stored.read_raw({{0}, {65536}}, std::as_writable_bytes(std::span(read)));
    CHECK(read == bits);
  }
}

TEST_CASE("blocks of chunked and checked data land where they belong", "[hdf5][dataset]") {
  const TempDir directory;
  Hdf5File file = Hdf5File::create_in_memory();
  DatasetOptions options;
  options.chunk = {1, 2, 4};
  options.fletcher32 = true;
  options.deflate = 1;
  {
    const Hdf5Dataset data =
        file.root().create_dataset("x", ElementType::int32, {2, 3, 4}, options);
    for (Index head = 0; head < 2; ++head) {
      for (Index row = 0; row < 3; ++row) {
        std::vector<std::int32_t> values(4);
        for (std::size_t i = 0; i < 4; ++i) {
          values[i] =
              static_cast<std::int32_t>(100 * head + 10 * row) + static_cast<std::int32_t>(i);
        }
        data.write<std::int32_t>({{head, row, 0}, {1, 1, 4}}, values);
      }
    }
  }
  write_file_atomically(directory / "x.h5", file.image());
  const auto values = test::raw_values<std::int32_t>(directory / "x.h5", "x");
  REQUIRE(values.size() == 24);
  CHECK(values[0] == 0);
  CHECK(values[(1 * 3 + 2) * 4 + 3] == 123);
  const Hdf5File read = Hdf5File::open_read_only(directory / "x.h5");
  const Hdf5Dataset data = read.root().dataset("x");
  CHECK(data.info().chunk == std::vector<Index>{1, 2, 4});
  CHECK(data.read<std::int32_t>({{1, 1, 2}, {1, 2, 2}}) ==
        std::vector<std::int32_t>{112, 113, 122, 123});
}

TEST_CASE("blocks outside the shape and wrong sizes are refused", "[hdf5][dataset]") {
  const Hdf5File file = Hdf5File::create_in_memory();
  const Hdf5Dataset data = file.root().create_dataset("x", ElementType::float32, {3, 4});
  const std::vector<float> four(4, 0.0F);
  CHECK_THROWS_AS(data.write<float>({{3, 0}, {1, 4}}, four), ShapeError);
  CHECK_THROWS_AS(data.write<float>({{0, 1}, {1, 4}}, four), ShapeError);
  CHECK_THROWS_AS(data.write<float>({{-1, 0}, {1, 4}}, four), ShapeError);
  CHECK_THROWS_AS(data.write<float>({{0}, {4}}, four), ShapeError);
  CHECK_THROWS_AS(data.write<float>({{0, 0}, {1, 3}}, four), ShapeError);
  CHECK_THROWS_AS(data.read<float>({{0, std::numeric_limits<Index>::max()}, {1, 2}}), ShapeError);
  CHECK_THROWS_AS(data.read<double>(), FormatError);
}

TEST_CASE("elements that were never written have the fill value", "[hdf5][dataset]") {
  const Hdf5File file = Hdf5File::create_in_memory();
  DatasetOptions options;
  options.chunk = {2};
  options.fill = std::numeric_limits<double>::quiet_NaN();
  const Hdf5Dataset data = file.root().create_dataset("x", ElementType::float32, {4}, options);
  data.write<float>({{0}, {1}}, std::vector<float>{7});
  const auto values = data.read<float>();
  CHECK(values[0] == 7);
  CHECK(std::isnan(values[1]));
  CHECK(std::isnan(values[3]));
}

TEST_CASE("texts of any length and shape read back", "[hdf5][dataset]") {
  const Hdf5File file = Hdf5File::create_in_memory();
  const std::vector<std::string> texts = {"", "\xc3\xa4", std::string(100'000, 'x'), "d"};
  file.root().create_texts("grid", {2, 2}, texts);
  CHECK(file.root().dataset("grid").read_texts() == texts);
  const std::vector<std::string> one = {"scalar"};
  file.root().create_texts("scalar", {}, one);
  CHECK(file.root().dataset("scalar").info().shape.empty());
  CHECK(file.root().dataset("scalar").read_texts() == one);
  CHECK_THROWS_AS(file.root().create_texts("bad", {3}, texts), ShapeError);
}

TEST_CASE("a dimension scale is attached with its name", "[hdf5][dataset]") {
  const TempDir directory;
  Hdf5File file = Hdf5File::create_in_memory();
  {
    const Hdf5Group root = file.root();
    const Hdf5Dataset axis = root.create_dataset("head", ElementType::int64, {3});
    axis.write<std::int64_t>(std::vector<std::int64_t>{0, 1, 2});
    axis.make_scale("head");
    const Hdf5Dataset data = root.create_dataset("x", ElementType::float32, {2, 3});
    data.write<float>(std::vector<float>(6, 1.0F));
    data.attach_scale(1, axis);
  }
  write_file_atomically(directory / "x.h5", file.image());
  test::edit_hdf5(directory / "x.h5", [](hid_t raw) {
    CHECK(H5Aexists_by_name(raw, "x", "DIMENSION_LIST", H5P_DEFAULT) > 0);
    CHECK(H5Aexists_by_name(raw, "head", "REFERENCE_LIST", H5P_DEFAULT) > 0);
  });
  const Hdf5File read = Hdf5File::open_read_only(directory / "x.h5");
  CHECK(read.root().dataset("head").attribute<std::string>("CLASS") == "DIMENSION_SCALE");
}

}  // namespace quoka
