#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "quoka/capture/reader.hpp"

namespace quoka {

/// Which part of a capture to keep.
struct CutOptions {
  std::vector<Index> layers;    ///< empty: all
  std::vector<Index> kv_heads;  ///< with the query heads that read them; empty: all
  /// Absolute positions of the rows of q to keep; a negative begin stands for the first row.
  std::optional<IndexRange> tokens;
  std::optional<StorageType> storage;  ///< number format of q, k and v; out and lse keep theirs
};

/// Writes that part as a capture of its own. Numbers are copied bit by bit, unless their format
/// changes.
///
/// tokens [a, b) keeps the rows of q, out and lse at these positions and the keys [0, b): every row
/// still sees exactly what it saw, so out and lse stay right, and q_offset becomes a. Annotations
/// that end by b stay. A prompt text is left out if tokens are cut off. A narrower number format
/// rounds q and k, which moves out: out_kind then becomes model_native.
///
/// Throws: ConfigError if a layer, head or token does not exist, the file exists already, or a
///         value does not fit into the number format; IoError.
void cut_capture(const CaptureReader& reader, const std::filesystem::path& path,
                 const CutOptions& options);

/// SHA-256 of one tensor's elements as they are stored (uncompressed, C order): what numpy's
/// hashlib.sha256(array.tobytes()) gives. Reading everything also checks the checksums of the file.
struct TensorChecksum {
  std::string name;  ///< "layers/007/q"
  std::string sha256;
};

/// Throws: FormatError naming the tensor if its data are damaged.
std::vector<TensorChecksum> tensor_checksums(const CaptureReader& reader);

}  // namespace quoka
