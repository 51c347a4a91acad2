#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quoka/capture/schema.hpp"
#include "quoka/core/matrix.hpp"
#include "quoka/hdf5/file.hpp"

namespace quoka {

/// Writes a capture piece by piece, so that it may be larger than memory. The file appears under
/// its name with commit(), complete; without, nothing is left.
class CaptureWriter {
 public:
  /// Starts a temporary file beside path. storage_dtype and token_ids_sha256 of info are computed
  /// here, and capture_id too if it is empty. Throws: IoError.
  CaptureWriter(const std::filesystem::path& path, CaptureInfo info, const CaptureTokens& tokens);
  ~CaptureWriter();  // not inline: OpenTensor is incomplete here
  CaptureWriter(const CaptureWriter&) = delete;
  CaptureWriter& operator=(const CaptureWriter&) = delete;

  /// Begins the next layer; its tensors follow with write_rows. q, k and v of all layers need the
  /// same storage type. Throws: ShapeError if a tensor of the layer before is incomplete.
  void add_layer(const CaptureLayer& layer);

  /// Rounds rows of one head of the layer begun last to the tensor's storage type and writes them.
  /// Blocks of 1024 rows from a multiple of 1024 are fastest.
  ///
  /// Shapes:  values [rows.size(), k_head_dim or v_head_dim].
  /// Throws: ShapeError; ConfigError if a finite value becomes infinite in the storage type;
  /// IoError, a
  ///         full disk included.
  void write_rows(Tensor tensor, Index head, IndexRange rows, const Matrix& values);

  /// For a layer with has_lse. Throws: as write_rows.
  void write_lse(Index head, IndexRange rows, const Vector& values);

  /// At most once. Labels longer than 64 bytes are cut.
  void write_annotations(std::span<const Annotation> annotations);

  /// Publishes the file. Throws: ShapeError if a tensor is incomplete; IoError.
  void commit();

 private:
  struct OpenTensor;

  /// Removes the file of that name, if it still exists, at the end of its life.
  struct TemporaryFile {
    std::filesystem::path path;
    ~TemporaryFile();
  };

  void check_layer_complete() const;
  void create_tensors(const Hdf5Group& group);
  OpenTensor& open_tensor(const std::string& name);

  std::filesystem::path path_;
  TemporaryFile temporary_;
  Hdf5File file_;
  CaptureInfo info_;
  std::optional<CaptureLayer> layer_;
  std::vector<OpenTensor> tensors_;  ///< of the layer begun last
};

}  // namespace quoka
