#include "quoka/hdf5/object.hpp"

#include <cstdint>

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

}  // namespace

TEST_CASE("attributes read back as they were written", "[hdf5][object]") {
  const Hdf5File file = Hdf5File::create_in_memory();
  const Hdf5Group root = file.root();
  root.write_attribute<std::int64_t>("int64", -(std::int64_t{1} << 40));
  root.write_attribute<std::uint32_t>("uint32", 4'000'000'000U);
  root.write_attribute<std::uint8_t>("uint8", 255);
  root.write_attribute<double>("double", 0.1);
  root.write_text_attribute("text", "k\xc3\xb6nig");
  root.write_text_attribute("empty", "");
  CHECK(root.attribute<std::int64_t>("int64") == -(std::int64_t{1} << 40));
  CHECK(root.attribute<std::uint32_t>("uint32") == 4'000'000'000U);
  CHECK(root.attribute<std::uint8_t>("uint8") == 255);
  CHECK(root.attribute<double>("double") == 0.1);
  CHECK(root.attribute<std::string>("text") == "k\xc3\xb6nig");
  CHECK(root.attribute<std::string>("empty").empty());
  CHECK(root.has_attribute("text"));
  CHECK_FALSE(root.has_attribute("other"));
}

TEST_CASE("attributes of other writers are read or refused by type", "[hdf5][object]") {
  const TempDir directory;
  const auto path = directory / "a.h5";
  write_file_atomically(path, Hdf5File::create_in_memory().image());
  test::edit_hdf5(path, [](hid_t file) {
    test::set_text(file, "/", "fixed", "fixed text");
    test::set_variable_text(file, "/", "variable", "variable text");
    test::set_attribute<std::int32_t>(file, "/", "int32", -3);
    test::set_attribute<float>(file, "/", "float32", 0.5F);
    const std::uint64_t huge = ~std::uint64_t{0};
    test::set_attribute(file, "/", "huge", H5T_NATIVE_UINT64, &huge);
    const hid_t boolean = H5Tenum_create(H5T_NATIVE_INT8);
    const std::int8_t one = 1;
    H5Tenum_insert(boolean, "TRUE", &one);
    test::set_attribute(file, "/", "bool", boolean, &one);
    H5Tclose(boolean);
    const hid_t padded = H5Tcopy(H5T_C_S1);
    H5Tset_size(padded, 6);
    H5Tset_strpad(padded, H5T_STR_SPACEPAD);
    test::set_attribute(file, "/", "padded", padded, "ab    ");
    H5Tclose(padded);
  });
  const Hdf5File file = Hdf5File::open_read_only(path);
  const Hdf5Group root = file.root();
  CHECK(root.attribute<std::string>("fixed") == "fixed text");
  CHECK(root.attribute<std::string>("variable") == "variable text");
  CHECK(root.attribute<std::string>("padded") == "ab");
  CHECK(root.attribute<std::int64_t>("int32") == -3);
  CHECK_THROWS_WITH(root.attribute<std::uint8_t>("int32"),
                    contains("is -3, which does not fit into uint8"));
  CHECK_THROWS_WITH(root.attribute<std::int64_t>("huge"), contains("does not fit into int64"));
  CHECK_THROWS_WITH(root.attribute<double>("float32"), contains("float32 instead of float64"));
  CHECK_THROWS_WITH(root.attribute<std::uint8_t>("bool"), contains("enum"));
  CHECK_THROWS_WITH(root.attribute<std::int64_t>("fixed"), contains("text instead of int64"));
  CHECK_THROWS_WITH(root.attribute<std::string>("int32"), contains("int32 instead of text"));
  CHECK_THROWS_AS(root.attribute<double>("missing"), FormatError);
  CHECK_THROWS_WITH(root.attribute<double>("missing"),
                    contains(path.string() + ": /: attribute 'missing' is missing"));
}

TEST_CASE("P36 text above 60 KiB is refused as an attribute", "[hdf5][object]") {
  const Hdf5File file = Hdf5File::create_in_memory();
  CHECK_THROWS_AS(file.root().write_text_attribute("long", std::string(100'000, 'x')), IoError);
  CHECK_THROWS_WITH(file.root().write_text_attribute("long", std::string(100'000, 'x')),
                    contains("store long text as a dataset"));
}

}  // namespace quoka
