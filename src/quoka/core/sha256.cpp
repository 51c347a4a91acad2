#include "quoka/core/sha256.hpp"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <vector>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

void check(bool ok) { require<Error>(ok, "libcrypto could not compute a SHA-256"); }

}  // namespace

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest{EVP_MD_CTX_new(),
                                                                 &EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  check(context_->digest != nullptr &&
        EVP_DigestInit_ex(context_->digest.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  check(EVP_DigestUpdate(context_->digest.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(context_->digest.get(), digest.data(), &size) == 1);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += fmt::format("{:02x}", digest[i]);
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  require<IoError>(file.good(), "cannot read {} (needed for its SHA-256)", path.string());
  constexpr std::size_t block_size = 1 << 20;
  std::vector<char> block(block_size);
  Sha256 hash;
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    hash.update({block.data(), static_cast<std::size_t>(file.gcount())});
  }
  require<IoError>(file.eof(), "reading {} failed before its end", path.string());
  return hash.hex();
}

}  // namespace quoka
