#include "quoka/hdf5/file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <vector>

#include "quoka/core/atomic_file.hpp"
#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/temp_dir.hpp"

namespace quoka {
namespace {

using test::contains;
using test::TempDir;

std::filesystem::path write_small_file(const TempDir& directory) {
  Hdf5File file = Hdf5File::create_in_memory();
  const Hdf5Group group = file.root().create_group("group");
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  group.create_dataset("values", ElementType::float32, {2, 3})
      .write(std::span<const float>(values));
  const auto path = directory / "small.h5";
  write_file_atomically(path, file.image());
  return path;
}

}  // namespace

TEST_CASE("a file made in memory reads back from disk", "[hdf5][file]") {
  const TempDir directory;
  const Hdf5File file = Hdf5File::open_read_only(write_small_file(directory));
  const Hdf5Dataset values = file.root().group("group").dataset("values");
  CHECK(values.info().type == ElementType::float32);
  CHECK(values.info().shape == std::vector<Index>{2, 3});
  CHECK(values.read<float>() == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(values.read<float>({{1, 1}, {1, 2}}) == std::vector<float>{5, 6});
}

TEST_CASE("written files have superblock version 2", "[hdf5][file]") {
  Hdf5File file = Hdf5File::create_in_memory();
  const std::string image = file.image();
  REQUIRE(image.size() > 8);
  CHECK(image.substr(0, 4) == "\x89HDF");
  CHECK(image[8] == 2);  // the byte after the signature
}

TEST_CASE("the same content gives the same bytes", "[hdf5][file]") {
  const TempDir first;
  const TempDir second;
  const auto bytes = [](const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  };
  CHECK(bytes(write_small_file(first)) == bytes(write_small_file(second)));
}

TEST_CASE("missing files and files that are not HDF5 are refused", "[hdf5][file]") {
  const TempDir directory;
  CHECK_THROWS_AS(Hdf5File::open_read_only(directory / "none.h5"), FormatError);
  CHECK_THROWS_WITH(Hdf5File::open_read_only(directory / "none.h5"), contains("does not exist"));
  CHECK_THROWS_WITH(Hdf5File::open_read_only(directory.path()), contains("not a regular file"));
  std::ofstream(directory / "text.h5") << "model_id: none";
  CHECK_THROWS_AS(Hdf5File::open_read_only(directory / "text.h5"), FormatError);
  CHECK_THROWS_WITH(Hdf5File::open_read_only(directory / "text.h5"), contains("not an HDF5 file"));
  std::ofstream(directory / "empty.h5") << "";
  CHECK_THROWS_WITH(Hdf5File::open_read_only(directory / "empty.h5"), contains("not an HDF5 file"));
}

TEST_CASE("a truncated file is refused with the remedy", "[hdf5][file]") {
  const TempDir directory;
  const auto path = write_small_file(directory);
  const auto size = std::filesystem::file_size(path);
  for (const auto kept : {size - 1, size / 2, std::uintmax_t{64}, std::uintmax_t{9}}) {
    std::filesystem::resize_file(path, kept);
    CHECK_THROWS_AS(Hdf5File::open_read_only(path), FormatError);
    CHECK_THROWS_WITH(Hdf5File::open_read_only(path), contains("truncated or damaged"));
  }
}

TEST_CASE("P34 a file that a writer has locked can be read", "[hdf5][file]") {
  const TempDir directory;
  const auto path = write_small_file(directory);
  const int writer = open(path.c_str(), O_RDWR);
  REQUIRE(flock(writer, LOCK_EX | LOCK_NB) == 0);  // what HDF5 does for a writer
  CHECK_NOTHROW(Hdf5File::open_read_only(path).root().group("group"));
  close(writer);
}

TEST_CASE("a full disk in the middle of a file is an IoError and HDF5 goes on", "[hdf5][file]") {
  const TempDir directory;
  const int code = test::exit_code_with_file_limit(200'000, [&] {
    bool failed = false;
    try {
      const Hdf5File file = Hdf5File::create_on_disk(directory / "big.h5");
      DatasetOptions options;
      options.chunk = {1, 1000};
      options.fletcher32 = true;
      const Hdf5Dataset data =
          file.root().create_dataset("data", ElementType::float32, {1000, 1000}, options);
      const std::vector<float> row(1000, 1.0F);
      for (Index i = 0; i < 1000; ++i) {
        data.write<float>({{i, 0}, {1, 1000}}, row);
      }
    } catch (const IoError&) {
      failed = true;
    }
    const bool works = Hdf5File::create_in_memory().image().size() > 8;
    return failed && works ? 7 : 8;
  });
  CHECK(code == 7);
}

TEST_CASE("a full disk found when the file is closed is an IoError", "[hdf5][file]") {
  const TempDir directory;
  const int code = test::exit_code_with_file_limit(300, [&] {  // less than the metadata alone
    try {
      Hdf5File file = Hdf5File::create_on_disk(directory / "big.h5");
      for (int i = 0; i < 20; ++i) {
        static_cast<void>(file.root().create_group("group" + std::to_string(i)));
      }
      file.close();
    } catch (const IoError&) {
      return 7;
    }
    return 8;
  });
  CHECK(code == 7);
}

}  // namespace quoka
