#pragma once

#include <string>
#include <vector>

#include "quoka/hdf5/dataset.hpp"
#include "quoka/hdf5/object.hpp"

namespace quoka {

/// An open group. Names are single path components; only hard links are followed, so that a file
/// cannot lead to another file.
class Hdf5Group : public Hdf5Object {
 public:
  Hdf5Group(Hdf5Id id, std::string where) : Hdf5Object(std::move(id), std::move(where)) {}

  /// True if a link of that name exists, of whatever kind.
  [[nodiscard]] bool contains(const std::string& name) const;

  /// Throws: FormatError if it is missing, not a hard link or not a group.
  [[nodiscard]] Hdf5Group group(const std::string& name) const;

  /// Opens a dataset after checking, without reading data: layout contiguous, compact or chunked;
  /// no external storage; at most 3 filters of shuffle, deflate, fletcher32; chunks <= 64 MiB; the
  /// limits.
  ///
  /// Throws: FormatError naming the dataset, the two values and the remedy.
  [[nodiscard]] Hdf5Dataset dataset(const std::string& name,
                                    const DatasetLimits& limits = {}) const;

  /// Names of all links in name order. Throws: FormatError if there are more than max_children.
  [[nodiscard]] std::vector<std::string> children(Index max_children = 100'000) const;

  [[nodiscard]] Hdf5Group create_group(const std::string& name) const;
  /// Numeric types only. An empty shape is a scalar.
  [[nodiscard]] Hdf5Dataset create_dataset(const std::string& name, ElementType type,
                                           const std::vector<Index>& shape,
                                           const DatasetOptions& options = {}) const;
  /// Creates a dataset of variable-length UTF-8 text and fills it.
  Hdf5Dataset create_texts(const std::string& name, const std::vector<Index>& shape,
                           std::span<const std::string> texts) const;
};

}  // namespace quoka
