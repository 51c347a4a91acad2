#pragma once

/// What a results file holds, as plain data. Comes in: cells that a sweep computed. Goes out: one
/// HDF5 file, a CSV table. Knows nothing of selectors: a configuration is a label with named
/// values.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quoka/core/attention_shape.hpp"
#include "quoka/core/matrix.hpp"
#include "quoka/results/provenance.hpp"

namespace quoka {

/// Changes when docs/results-format.md changes in a way that a reader must know.
constexpr Index results_format_version = 1;

/// What every cell of a sweep has in common; cells with other constants are other cells.
struct SweepConstants {
  Index sink_size = 4;      ///< leading positions that *_no_sink leaves out
  Index min_history = 0;    ///< history keys that an active chunk needs
  bool by_chunk = false;    ///< the means per chunk are stored too
  bool selections = false;  ///< the kept keys are stored too

  bool operator==(const SweepConstants&) const = default;
};

/// One parameter of the configurations, a coordinate along `config`.
struct ConfigParameter {
  std::string name;
  std::string help;
  bool is_number = false;           ///< stored as float64, otherwise as text
  std::vector<std::string> values;  ///< [n_configs]; "" where it does not matter

  bool operator==(const ConfigParameter&) const = default;
};

struct ResultsCapture {
  std::string stem;  ///< file name without folder and suffix: the label
  std::string path;  ///< as given
  std::string sha256;
  std::string model_id;
  std::string verdict = "not verified";

  bool operator==(const ResultsCapture&) const = default;
};

/// Facts of one layer of one capture.
struct ResultsLayer {
  bool present = false;  ///< false: the capture lacks this layer
  std::string kind;      ///< "full", "window+unrotated", ...
  double softmax_scale = 0;
  AttentionShape shape;

  bool operator==(const ResultsLayer&) const = default;
};

/// Labels of the four axes and what is known of each.
struct ResultsAxes {
  std::vector<std::string> config_ids;
  std::vector<ConfigParameter> parameters;
  std::vector<ResultsCapture> captures;
  std::vector<Index> layers;              ///< layer indices, ascending
  Index n_q_heads = 0;                    ///< largest of all layers
  std::vector<ResultsLayer> layer_facts;  ///< [n_captures, n_layers]

  [[nodiscard]] Index n_configs() const { return std::ssize(config_ids); }
  [[nodiscard]] Index n_captures() const { return std::ssize(captures); }
  [[nodiscard]] Index n_layers() const { return std::ssize(layers); }
  /// Values of one variable: n_configs * n_captures * n_layers * n_q_heads.
  [[nodiscard]] Index n_values() const {
    return n_configs() * n_captures() * n_layers() * n_q_heads;
  }
  [[nodiscard]] const ResultsLayer& facts(Index capture, Index layer) const {
    return layer_facts[static_cast<std::size_t>(capture * n_layers() + layer)];
  }
  /// The parameter of that name, or nullptr.
  [[nodiscard]] const ConfigParameter* parameter(std::string_view name) const;

  bool operator==(const ResultsAxes&) const = default;
};

/// Place of a cell on the axes (positions, not labels).
struct CellPlace {
  Index config = 0;
  Index capture = 0;
  Index layer = 0;
};

/// The means per chunk. Chunks that a configuration lacks are NaN.
struct ChunkTable {
  Index n_chunks = 0;          ///< largest count of all configurations
  std::vector<float> values;   ///< [chunk column, config, capture, layer, q_head, chunk]
  std::vector<double> begins;  ///< [config, capture, layer, chunk] absolute positions
  std::vector<double> ends;    ///< likewise, half open
};

/// The kept keys: one entry per (config, capture, layer, active chunk, KV head).
struct SelectionTable {
  std::vector<std::int64_t> config_index;
  std::vector<std::int64_t> capture_index;
  std::vector<std::int64_t> layer_idx;
  std::vector<std::int64_t> kv_head;
  std::vector<std::int64_t> chunk_begin;
  std::vector<std::int64_t> offset;  ///< into key_indices
  std::vector<std::int64_t> count;
  std::vector<float> cut_score;
  std::vector<float> cut_margin;
  std::vector<std::int32_t>
      key_indices;  ///< absolute positions of all entries, one after the other
};

/// A whole results file.
struct Results {
  SweepConstants constants;
  ResultsAxes axes;
  std::vector<float> values;  ///< [cell column, config, capture, layer, q_head]; NaN = missing
  std::optional<ChunkTable> by_chunk;
  std::optional<SelectionTable> selections;
  Provenance provenance;

  /// One variable [config, capture, layer, q_head].
  [[nodiscard]] std::span<const float> column(Index column) const;
  [[nodiscard]] float value(Index column, CellPlace place, Index q_head) const;
  /// The heads of one cell of one variable.
  std::span<float> heads(Index column, CellPlace place);
  /// True if the cell was computed (its n_rows is a number).
  [[nodiscard]] bool has_cell(CellPlace place) const;
};

/// Results on these axes with no cell computed: every value NaN.
Results empty_results(const SweepConstants& constants, ResultsAxes axes);

}  // namespace quoka
