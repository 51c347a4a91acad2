#include "quoka/core/sha256.hpp"

#include <fstream>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace quoka {

TEST_CASE("SHA-256 gives the published digests", "[core][sha256]") {
  // Examples of FIPS 180-2, appendix B; the first is the digest of nothing.
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("the digest of a file is that of its bytes", "[core][sha256]") {
  const test::TempDir directory;
  // Longer than one block of reading, and not a multiple of it.
  const std::string bytes((1 << 20) + 17, 'q');
  std::ofstream(directory / "f", std::ios::binary) << bytes;
  CHECK(sha256_of_file(directory / "f") == sha256_hex(bytes));
  std::ofstream(directory / "empty", std::ios::binary) << "";
  CHECK(sha256_of_file(directory / "empty") == sha256_hex(""));
}

TEST_CASE("a file that cannot be read has no digest", "[core][sha256]") {
  const test::TempDir directory;
  CHECK_THROWS_AS(sha256_of_file(directory / "none"), IoError);
  CHECK_THROWS_AS(sha256_of_file(directory.path()), IoError);
}

}  // namespace quoka
