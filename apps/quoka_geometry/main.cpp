// quoka-geometry: measures the queries and keys of a capture's layers, to one HDF5 file.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <new>

#include "common/exit_codes.hpp"
#include "common/program.hpp"
#include "quoka/capture/verified_state.hpp"
#include "quoka/core/atomic_file.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/sha256.hpp"
#include "quoka/hdf5/file.hpp"
#include "quoka/study/measure_layer.hpp"
#include "quoka/sweep/layer_input.hpp"
#include "quoka_geometry/options.hpp"
#include "quoka_geometry/summary.hpp"

namespace {

using namespace quoka;
using namespace quoka::apps;

void check_stop() {
  require<Interrupted>(!stop_requested.load(),
                       "interrupted; nothing is written, run the same command to start again");
}

/// True if the file says that this program wrote it.
bool is_geometry_file(const std::filesystem::path& path) {
  try {
    return Hdf5File::open_read_only(path).root().attribute<std::string>("format") ==
           "quoka-geometry";
  } catch (const Error&) {
    return false;
  }
}

void check_output(const GeometryArguments& arguments) {
  const std::filesystem::path out = arguments.out;
  if (!std::filesystem::exists(out)) {
    return;
  }
  require<ConfigError>(arguments.overwrite,
                       "output {} exists; use another --out, or --overwrite to replace it",
                       arguments.out);
  require<ConfigError>(is_geometry_file(out),
                       "output {} is not a geometry file (--overwrite replaces only its own kind); "
                       "use another --out",
                       arguments.out);
}

std::vector<Index> chosen_layers(const CaptureReader& reader, std::vector<Index> layers) {
  if (layers.empty()) {
    for (const CaptureLayer& layer : reader.layers()) {
      layers.push_back(layer.layer_idx);
    }
  }
  std::ranges::sort(layers);
  layers.erase(std::ranges::unique(layers).begin(), layers.end());
  const AttentionRules& rules = reader.layer(layers.front()).rules;
  for (const Index layer_idx : layers) {
    const Index q_offset = reader.layer(layer_idx).rules.q_offset;
    require<FormatError>(q_offset == rules.q_offset,
                         "{}: layer {} has q_offset {}, layer {} has {} (one file holds the same "
                         "queries of all layers); choose with --layer",
                         reader.path().string(), layer_idx, q_offset, layers.front(),
                         rules.q_offset);
  }
  return layers;
}

StudyAxes study_axes(const CaptureReader& reader, const std::vector<Index>& layers,
                     const StudySettings& settings) {
  StudyAxes axes;
  axes.layers = layers;
  for (const Index layer_idx : layers) {
    const CaptureLayer& layer = reader.layer(layer_idx);
    axes.n_q_heads = std::max(axes.n_q_heads, layer.shape.n_q_heads);
    axes.n_kv_heads = std::max(axes.n_kv_heads, layer.shape.n_kv_heads);
    axes.head_dim = std::max(axes.head_dim, layer.shape.k_head_dim);
  }
  const CaptureLayer& first = reader.layer(layers.front());
  const StudySamples samples = study_samples(first.shape, settings);
  axes.q_offset = first.rules.q_offset;
  axes.n_tokens = first.shape.n_tokens;
  axes.chunk_size = settings.rows_per_chunk(axes.n_tokens);
  axes.query_samples = samples.queries;
  axes.key_samples = samples.keys;
  return axes;
}

/// A file with facts and no values yet.
GeometryFile new_file(const CaptureReader& reader, const std::vector<Index>& layers,
                      const GeometryArguments& arguments, std::string line) {
  const std::string sha256 = sha256_of_file(arguments.capture);
  GeometryFile file{
      .capture = {.stem = reader.path().stem().string(),
                  .path = arguments.capture,
                  .sha256 = sha256,
                  .model_id = reader.info().model_id,
                  .verdict = verified_state(arguments.capture, sha256)},
      .layers = {},
      .settings = arguments.settings,
      .table = GeometryTable(study_dimensions(study_axes(reader, layers, arguments.settings))),
      .provenance = local_provenance()};
  for (const Index layer_idx : layers) {
    const CaptureLayer& layer = reader.layer(layer_idx);
    file.layers.push_back({true, layer_kind(layer), layer.rules.scale, layer.shape});
  }
  file.provenance.command_line = std::move(line);
  file.provenance.config_text = settings_text(arguments.settings);
  file.provenance.threads = arguments.settings.n_threads;
  file.provenance.units_total = std::ssize(layers);
  return file;
}

/// Fills one layer, or notes why not.
void measure(const CaptureReader& reader, Index place, Index layer_idx, GeometryFile& file) {
  const auto fail = [&](std::string reason) {
    file.table.forget(place);
    file.provenance.failed.push_back({file.capture.stem, layer_idx, std::move(reason)});
  };
  try {
    const LayerInput input = layer_input(reader, layer_idx);
    measure_layer(input, place, file.settings, study_samples(input.shape, file.settings),
                  file.table, check_stop);
    ++file.provenance.units_done;
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    fail(error.what());
  } catch (const std::bad_alloc&) {
    fail("out of memory (--samples takes less)");
  }
}

ExitCode run(const GeometryArguments& arguments, std::string line) {
  const CaptureReader reader(arguments.capture);
  const std::vector<Index> layers = chosen_layers(reader, arguments.layers);
  check_output(arguments);
  GeometryFile file = new_file(reader, layers, arguments, std::move(line));
  for (Index place = 0; place < std::ssize(layers); ++place) {
    const Index layer_idx = layers[static_cast<std::size_t>(place)];
    measure(reader, place, layer_idx, file);
    if (!arguments.quiet) {
      fmt::print(stderr, "layer {} ({} of {})\n", layer_idx, place + 1, layers.size());
    }
  }
  write_file_atomically(arguments.out, geometry_image(file));
  for (const FailedUnit& unit : file.provenance.failed) {
    fmt::print(stderr, "quoka-geometry: no values for {} layer {}: {}\n", unit.capture,
               unit.layer_idx, unit.reason);
  }
  if (!arguments.quiet) {
    print_out(summary_table(file));
  }
  return file.provenance.failed.empty() ? exit_done : exit_failed;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const GeometryArguments arguments = parse_arguments(argc, argv);
    if (!arguments.run) {
      return exit_done;
    }
    handle_stop_signals();
    return run(arguments, command_line(argc, argv));
  } catch (...) {
    return report_exception("quoka-geometry");
  }
}
