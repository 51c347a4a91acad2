#include "quoka/hdf5/group.hpp"

#include <array>
#include <fstream>

#include "quoka/core/atomic_file.hpp"
#include "quoka/core/error.hpp"
#include "quoka/hdf5/file.hpp"
#include "support/catch.hpp"
#include "support/raw_hdf5.hpp"
#include "support/temp_dir.hpp"

namespace quoka {
namespace {

using test::contains;
using test::set_dataset;
using test::TempDir;

// A property list for a dataset, closed with the scope.
class Properties {
 public:
  Properties() : id_(H5Pcreate(H5P_DATASET_CREATE)) {}
  ~Properties() { H5Pclose(id_); }
  Properties(const Properties&) = delete;
  Properties& operator=(const Properties&) = delete;
  [[nodiscard]] hid_t id() const { return id_; }

 private:
  hid_t id_;
};

// Opens the dataset "x" of a file that the edit has made.
void open_edited(const std::function<void(hid_t)>& edit, const DatasetLimits& limits = {}) {
  const TempDir directory;
  const auto path = directory / "edited.h5";
  write_file_atomically(path, Hdf5File::create_in_memory().image());
  test::edit_hdf5(path, edit);
  const Hdf5File file = Hdf5File::open_read_only(path);
  static_cast<void>(file.root().dataset("x", limits));
}

void check_refused(const std::function<void(hid_t)>& edit, const char* expected,
                   const DatasetLimits& limits = {}) {
  INFO(expected);
  CHECK_THROWS_AS(open_edited(edit, limits), FormatError);
  CHECK_THROWS_WITH(open_edited(edit, limits), contains(expected) && contains("edited.h5: /x"));
}

const std::vector<float> zeros(1000, 0.0F);

}  // namespace

TEST_CASE("children come in name order and are bounded", "[hdf5][group]") {
  const Hdf5File file = Hdf5File::create_in_memory();
  const Hdf5Group root = file.root();
  for (const char* name : {"b", "a", "long name"}) {
    static_cast<void>(root.create_group(name));
  }
  CHECK(root.children() == std::vector<std::string>{"a", "b", "long name"});
  CHECK_THROWS_WITH(root.children(2), contains("3 members, more than 2"));
  CHECK(root.contains("a"));
  CHECK_FALSE(root.contains("c"));
}

TEST_CASE("missing members and members of another kind are named", "[hdf5][group]") {
  const Hdf5File file = Hdf5File::create_in_memory();
  const Hdf5Group inner = file.root().create_group("outer").create_group("inner");
  static_cast<void>(inner.create_dataset("x", ElementType::uint8, {1}));
  CHECK_THROWS_AS(inner.group("none"), FormatError);
  CHECK_THROWS_WITH(inner.group("none"), contains("/outer/inner/none is missing"));
  CHECK_THROWS_WITH(inner.group("x"), contains("/outer/inner/x is not a group"));
  CHECK_THROWS_WITH(file.root().dataset("outer"), contains("/outer is not a dataset"));
  CHECK_THROWS_AS(file.root().create_group("outer"), IoError);
}

TEST_CASE("soft and external links are not followed", "[hdf5][group]") {
  const auto with_target = [](hid_t file) {
    set_dataset(file, "target", H5T_NATIVE_FLOAT, {10}, zeros.data());
  };
  check_refused(
      [&](hid_t file) {
        with_target(file);
        H5Lcreate_soft("/target", file, "x", H5P_DEFAULT, H5P_DEFAULT);
      },
      "soft or external link");
  check_refused(
      [](hid_t file) {
        H5Lcreate_external("other.h5", "/secret", file, "x", H5P_DEFAULT, H5P_DEFAULT);
      },
      "soft or external link");
}

TEST_CASE("data outside the file are not read", "[hdf5][group]") {
  check_refused(
      [](hid_t file) {
        const Properties properties;
        H5Pset_external(properties.id(), "/etc/passwd", 0, 40);
        set_dataset(file, "x", H5T_NATIVE_FLOAT, {10}, nullptr, properties.id());
      },
      "external files");
  check_refused(
      [](hid_t file) {
        const Properties properties;
        const hsize_t extent = 10;
        const hid_t space = H5Screate_simple(1, &extent, nullptr);
        H5Pset_virtual(properties.id(), space, "other.h5", "/y", space);
        set_dataset(file, "x", H5T_NATIVE_FLOAT, {10}, nullptr, properties.id());
        H5Sclose(space);
      },
      "virtual dataset");
}

TEST_CASE("filters that may need a plug-in are refused", "[hdf5][group]") {
  check_refused(
      [](hid_t file) {
        const Properties properties;
        const hsize_t chunk = 10;
        H5Pset_chunk(properties.id(), 1, &chunk);
        H5Pset_nbit(properties.id());
        set_dataset(file, "x", H5T_NATIVE_FLOAT, {10}, zeros.data(), properties.id());
      },
      "uses the HDF5 filter 5");
  check_refused(
      [](hid_t file) {
        const Properties properties;
        const hsize_t chunk = 10;
        H5Pset_chunk(properties.id(), 1, &chunk);
        for (int i = 0; i < 4; ++i) {
          H5Pset_deflate(properties.id(), 1);
        }
        set_dataset(file, "x", H5T_NATIVE_FLOAT, {10}, zeros.data(), properties.id());
      },
      "has 4 filters");
}

TEST_CASE("declared sizes are checked before anything is read", "[hdf5][group]") {
  const hsize_t huge = hsize_t{1} << 30;
  check_refused(
      [=](hid_t file) {
        set_dataset(file, "x", H5T_NATIVE_FLOAT, {huge, huge}, nullptr);
      },
      "declares about 4.61e+18 bytes");
  check_refused([=](hid_t file) { set_dataset(file, "x", H5T_NATIVE_FLOAT, {8 * huge}, nullptr); },
                "declares an extent of 8589934592 on axis 0");
  check_refused([](hid_t file) { set_dataset(file, "x", H5T_NATIVE_FLOAT, {10}, zeros.data()); },
                "declares about 40 bytes, more than 39", {.max_bytes = 39});
  check_refused([](hid_t file) { set_dataset(file, "x", H5T_NATIVE_FLOAT, {0}, nullptr); },
                "no elements on axis 0");
  check_refused([](hid_t file) { set_dataset(file, "x", H5T_NATIVE_FLOAT, {10}, nullptr); },
                "never written");
}

TEST_CASE("a filter bomb is refused by its ratio and by its chunk", "[hdf5][group]") {
  check_refused(
      [](hid_t file) {
        const Properties properties;
        const hsize_t chunk = 1'000'000;
        H5Pset_chunk(properties.id(), 1, &chunk);
        H5Pset_deflate(properties.id(), 9);
        H5Pset_deflate(properties.id(), 9);  // the second squeezes what the first left
        const std::vector<float> many(1'000'000, 0.0F);
        set_dataset(file, "x", H5T_NATIVE_FLOAT, {1'000'000}, many.data(), properties.id());
      },
      "filter bomb");
  check_refused(
      [](hid_t file) {
        const Properties properties;
        const hsize_t chunk = 20'000'000;  // 80 MB
        H5Pset_chunk(properties.id(), 1, &chunk);
        set_dataset(file, "x", H5T_NATIVE_FLOAT, {20'000'000}, nullptr, properties.id());
      },
      "use smaller chunks");
}

TEST_CASE("a dataset whose writer stopped early is refused", "[hdf5][group]") {
  check_refused(
      [](hid_t file) {
        const Properties properties;
        const hsize_t chunk = 10;
        H5Pset_chunk(properties.id(), 1, &chunk);
        set_dataset(file, "x", H5T_NATIVE_FLOAT, {30}, nullptr, properties.id());
        const hid_t dataset = H5Dopen2(file, "x", H5P_DEFAULT);
        const hid_t space = H5Dget_space(dataset);
        const hsize_t start = 0;
        H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, nullptr, &chunk, nullptr);
        const hid_t memory = H5Screate_simple(1, &chunk, nullptr);
        H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, zeros.data());
        H5Sclose(memory);
        H5Sclose(space);
        H5Dclose(dataset);
      },
      "has 1 of its 3 chunks");
}

TEST_CASE("empty and unwritten datasets are read where that is allowed", "[hdf5][group]") {
  DatasetLimits limits;
  limits.allow_empty = true;
  CHECK_NOTHROW(open_edited(
      [](hid_t file) {
        set_dataset(file, "x", H5T_NATIVE_FLOAT, {0, 3}, nullptr);
      },
      limits));
  CHECK_NOTHROW(open_edited(
      [](hid_t file) { set_dataset(file, "x", H5T_NATIVE_FLOAT, {3}, nullptr); }, limits));
}

TEST_CASE("types are told apart by their fields", "[hdf5][group]") {
  const auto type_of = [](hid_t type) {
    const TempDir directory;
    write_file_atomically(directory / "t.h5", Hdf5File::create_in_memory().image());
    test::edit_hdf5(directory / "t.h5",
                    [type](hid_t file) { set_dataset(file, "x", type, {2}, zeros.data()); });
    return Hdf5File::open_read_only(directory / "t.h5").root().dataset("x").info().type;
  };
  CHECK(type_of(H5T_IEEE_F32LE) == ElementType::float32);
  CHECK(type_of(H5T_IEEE_F64LE) == ElementType::float64);
  CHECK(type_of(H5T_IEEE_F32BE) == ElementType::other);
  CHECK(type_of(H5T_STD_I8LE) == ElementType::int8);
  CHECK(type_of(H5T_STD_U64LE) == ElementType::uint64);
  CHECK(type_of(H5T_STD_I16BE) == ElementType::other);
  // A 16-bit float that is neither: 4 exponent and 11 mantissa bits.
  const hid_t odd = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(odd, 15, 11, 4, 0, 11);
  H5Tset_size(odd, 2);
  H5Tset_ebias(odd, 7);
  CHECK(type_of(odd) == ElementType::other);
  H5Tclose(odd);
}

}  // namespace quoka
