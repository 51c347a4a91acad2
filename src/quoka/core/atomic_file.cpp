#include "quoka/core/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include "quoka/core/error.hpp"

namespace quoka {
namespace {

// An open descriptor; close() reports what the destructor cannot.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) {
      ::close(value_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const { return value_; }

  /// False with errno set if the file system could not keep what was written.
  bool close() {
    const int value = value_;
    value_ = -1;
    return ::close(value) == 0;
  }

 private:
  int value_;
};

[[noreturn]] void throw_errno(const std::filesystem::path& path, const char* what) {
  const int code = errno;
  const bool is_full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  throw IoError(fmt::format("cannot {} {} ({}); {}", what, path.string(), std::strerror(code),
                            is_full ? "free some space or write to another disk"
                                    : "check that the directory exists and may be written"));
}

void write_all(int descriptor, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      throw_errno(path, "write");
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void flush_directory(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  const Descriptor directory(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some network file systems refuse fsync of a directory; there it has no meaning either.
  if (directory.get() < 0 || (::fsync(directory.get()) != 0 && errno != EINVAL)) {
    throw_errno(parent, "flush the directory");
  }
}

void remove_quietly(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

void write_new_file(const std::filesystem::path& path, std::string_view bytes,
                    const std::filesystem::path& final_path) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) {
    throw_errno(final_path, "create");
  }
  write_all(file.get(), bytes, final_path);
  if (!file.close()) {
    throw_errno(final_path, "write");
  }
}

}  // namespace

std::filesystem::path temporary_path(const std::filesystem::path& path) {
  // Containers that share a directory may share process numbers too, so a random number is added.
  static const unsigned nonce = std::random_device{}();
  static std::atomic<int> counter{0};
  return path.parent_path() / fmt::format(".{}.{}.{:08x}.{}.tmp", path.filename().string(),
                                          ::getpid(), nonce, counter++);
}

void publish_file(const std::filesystem::path& temporary, const std::filesystem::path& path) {
  try {
    Descriptor file(::open(temporary.c_str(), O_RDWR | O_CLOEXEC));
    if (file.get() < 0 || ::fsync(file.get()) != 0 || !file.close()) {
      throw_errno(path, "flush");
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw_errno(path, "replace");
    }
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }
  flush_directory(path);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path temporary = temporary_path(path);
  try {
    write_new_file(temporary, bytes, path);
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }
  publish_file(temporary, path);
}

}  // namespace quoka
