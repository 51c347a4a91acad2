#include "quoka/core/atomic_file.hpp"

#include <fstream>
#include <iterator>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/temp_dir.hpp"

namespace quoka {
namespace {

using test::contains;
using test::exit_code_with_file_limit;
using test::TempDir;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

int n_files(const std::filesystem::path& directory) {
  const std::filesystem::directory_iterator files(directory);
  return static_cast<int>(std::distance(begin(files), end(files)));
}

}  // namespace

TEST_CASE("an atomically written file holds exactly the bytes", "[core][atomic_file]") {
  const TempDir directory;
  const std::string bytes("a\0b\n", 4);
  write_file_atomically(directory / "out.bin", bytes);
  CHECK(content_of(directory / "out.bin") == bytes);
  write_file_atomically(directory / "out.bin", "");
  CHECK(content_of(directory / "out.bin").empty());
  CHECK(n_files(directory.path()) == 1);
}

TEST_CASE("writing into a missing directory names the path and the remedy", "[core][atomic_file]") {
  const TempDir directory;
  const auto path = directory / "missing/out.bin";
  CHECK_THROWS_AS(write_file_atomically(path, "x"), IoError);
  CHECK_THROWS_WITH(write_file_atomically(path, "x"),
                    contains(path.string()) && contains("check that the directory exists"));
}

TEST_CASE("a full disk leaves the old file and no temporary file", "[core][atomic_file]") {
  const TempDir directory;
  const auto path = directory / "out.bin";
  write_file_atomically(path, "old");
  const int code = exit_code_with_file_limit(1000, [&] {
    try {
      write_file_atomically(path, std::string(100'000, 'x'));
    } catch (const IoError& error) {
      return std::string(error.what()).find("free some space") != std::string::npos ? 7 : 8;
    }
    return 9;
  });
  CHECK(code == 7);
  CHECK(content_of(path) == "old");
  CHECK(n_files(directory.path()) == 1);
}

TEST_CASE("publishing onto a directory fails and removes the temporary file",
          "[core][atomic_file]") {
  const TempDir directory;
  std::filesystem::create_directory(directory / "taken");
  const auto temporary = temporary_path(directory / "taken");
  std::ofstream(temporary) << "x";
  CHECK_THROWS_AS(publish_file(temporary, directory / "taken"), IoError);
  CHECK_FALSE(std::filesystem::exists(temporary));
}

TEST_CASE("temporary names differ and stay in the same directory", "[core][atomic_file]") {
  const auto first = temporary_path("some/dir/out.h5");
  CHECK(first != temporary_path("some/dir/out.h5"));
  CHECK(first.parent_path() == "some/dir");
  CHECK(first.filename().string().starts_with(".out.h5."));
}

}  // namespace quoka
