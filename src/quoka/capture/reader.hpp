#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "quoka/capture/schema.hpp"
#include "quoka/core/matrix.hpp"
#include "quoka/hdf5/file.hpp"

namespace quoka {

/// How large a capture may be; checked before anything is allocated.
struct CaptureLimits {
  Index max_dim = Index{1} << 31;           ///< largest extent of one axis
  Index max_tensor_bytes = Index{1} << 40;  ///< largest unpacked tensor
};

/// An open capture. One thread at a time may use it.
class CaptureReader {
 public:
  /// Opens a capture and checks its whole structure: attributes, shapes, types and annotations of
  /// every layer. Tensors are not read.
  ///
  /// Throws: FormatError that names file, layer, tensor or attribute, the two values and the
  /// remedy;
  ///         IoError if the file exists and may not be read.
  explicit CaptureReader(const std::filesystem::path& path, const CaptureLimits& limits = {});

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const CaptureInfo& info() const { return info_; }
  [[nodiscard]] const CaptureTokens& tokens() const { return tokens_; }

  /// Layers in ascending order; at least one.
  [[nodiscard]] std::span<const CaptureLayer> layers() const { return layers_; }

  /// Throws: ConfigError with the layers that exist if this one does not.
  [[nodiscard]] const CaptureLayer& layer(Index layer_idx) const;

  /// In the order of the file.
  [[nodiscard]] std::span<const Annotation> annotations() const { return annotations_; }

  /// Rows of one head, widened to float32; reads nothing else. v of a layer with v_equals_k_prefix
  /// is cut out of k. Rows count from the tensor's first: row r of q and out is position q_offset +
  /// r.
  ///
  /// Shapes:  returns [rows.size(), k_head_dim or v_head_dim].
  /// Throws: ShapeError if head or rows do not exist; FormatError if the data are damaged.
  [[nodiscard]] Matrix read_rows(Index layer_idx, Tensor tensor, Index head, IndexRange rows) const;

  /// All rows of one head. Throws: also FormatError naming file, layer, tensor, head and token if
  /// there is a NaN or an infinity.
  [[nodiscard]] Matrix read_head_checked(Index layer_idx, Tensor tensor, Index head) const;

  /// Stored log-sum-exp of the logits, sink included. Throws: FormatError if the capture has none.
  [[nodiscard]] Vector read_lse(Index layer_idx, Index head, IndexRange rows) const;

 private:
  const Hdf5Dataset& dataset(const CaptureLayer& layer, const std::string& name) const;

  std::filesystem::path path_;
  Hdf5File file_;
  CaptureInfo info_;
  CaptureTokens tokens_;
  std::vector<CaptureLayer> layers_;
  std::vector<Annotation> annotations_;
  std::map<std::pair<Index, std::string>, Hdf5Dataset>
      datasets_;  ///< by layer and name, all checked
};

}  // namespace quoka
