#pragma once

/// The only room that knows HDF5. Comes in: paths, names, numbers. Goes out: checked objects and
/// raw values; every failure is an exception that carries HDF5's own error text. It knows no
/// format.
///
/// Use these classes from one thread at a time: HDF5 may be built without thread safety.

#include <filesystem>
#include <memory>
#include <string>

#include "quoka/hdf5/group.hpp"

namespace quoka {

/// An open HDF5 file. Objects opened from it must not be used after it is closed.
class Hdf5File {
 public:
  /// Opens for reading, without file locks (an open notebook does not matter) and without plug-ins.
  ///
  /// Throws: FormatError if the file is missing, not HDF5, truncated or damaged; IoError if it
  /// exists
  ///         and may not be read.
  static Hdf5File open_read_only(const std::filesystem::path& path);

  /// Creates a file that exists only in memory; image() gives its bytes. A full disk is then an
  /// ordinary error of our own write, which HDF5 itself does not survive.
  static Hdf5File create_in_memory();

  /// Creates or overwrites a file on disk, for data larger than memory.
  ///
  /// After a failed write the file is abandoned: HDF5 1.10 crashes when such a file is closed
  /// again.
  static Hdf5File create_on_disk(const std::filesystem::path& path);

  [[nodiscard]] Hdf5Group root() const;

  /// Closes a file made by create_in_memory, with all its objects, and returns its bytes.
  [[nodiscard]] std::string image();

  /// Writes what is buffered and closes the file with all its objects; fsync is the caller's.
  /// Throws: IoError, disk full included; the file on disk is then useless.
  void close();

 private:
  Hdf5File(Hdf5Id id, std::string name) : id_(std::move(id)), name_(std::move(name)) {}

  std::unique_ptr<std::string> image_;  // filled by HDF5 when it closes id_, so it must live longer
  Hdf5Id id_;
  std::string name_;
};

}  // namespace quoka
