#include "quoka/results/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "quoka/core/error.hpp"
#include "quoka/hdf5/file.hpp"
#include "quoka/metrics/columns.hpp"

namespace quoka {
namespace {

std::vector<std::string> texts(const Hdf5Group& group, const std::string& name) {
  return group.dataset(name, {.allow_empty = true}).read_texts();
}

/// Numbers as the shortest text that reads back the same; NaN is "".
std::string to_text(double value) { return std::isnan(value) ? "" : fmt::format("{}", value); }

void check_versions(const Hdf5Group& root) {
  const bool known =
      root.has_attribute("format") && root.attribute<std::string>("format") == "quoka-results";
  require<FormatError>(
      known,
      "{}: attribute format is not \"quoka-results\" (this is no results file); give a file "
      "that quoka-sweep run wrote",
      root.where());
  const auto format = root.attribute<std::int64_t>("format_version");
  require<FormatError>(format == results_format_version,
                       "{}: format_version {} is not {} (another layout); read it with the program "
                       "version that wrote it",
                       root.where(), format, results_format_version);
  const auto metrics = root.attribute<std::int64_t>("metric_version");
  require<FormatError>(metrics == metric_version,
                       "{}: metric_version {} is not {} (the metrics are defined differently); run "
                       "the sweep again",
                       root.where(), metrics, metric_version);
}

/// The parameters are the 1-D variables along config that the metrics name as coordinates.
std::vector<ConfigParameter> read_parameters(const Hdf5Group& root) {
  std::vector<ConfigParameter> parameters;
  const std::string& first_metric = cell_columns().front().name;
  const auto names = root.dataset(first_metric).attribute<std::string>("coordinates");
  for (std::size_t begin = 0; begin < names.size();) {
    const std::size_t end = std::min(names.find(' ', begin), names.size());
    ConfigParameter parameter;
    parameter.name = names.substr(begin, end - begin);
    begin = end + 1;
    if (parameter.name == "layer_kind") {
      continue;
    }
    const Hdf5Dataset dataset = root.dataset(parameter.name);
    parameter.help = dataset.attribute<std::string>("long_name");
    parameter.is_number = dataset.info().type == ElementType::float64;
    if (parameter.is_number) {
      std::ranges::transform(dataset.read<double>(), std::back_inserter(parameter.values), to_text);
    } else {
      parameter.values = dataset.read_texts();
    }
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

std::vector<ResultsCapture> read_captures(const Hdf5Group& root) {
  const auto stems = texts(root, "capture");
  const auto paths = texts(root.group("provenance"), "capture_path");
  const auto hashes = texts(root, "capture_sha256");
  const auto models = texts(root, "capture_model_id");
  const auto verdicts = texts(root, "capture_verified");
  std::vector<ResultsCapture> captures;
  for (std::size_t i = 0; i < stems.size(); ++i) {
    captures.push_back({stems[i], paths.at(i), hashes.at(i), models.at(i), verdicts.at(i)});
  }
  return captures;
}

std::vector<ResultsLayer> read_layer_facts(const Hdf5Group& root) {
  const auto kinds = texts(root, "layer_kind");
  const auto scales = root.dataset("softmax_scale").read<double>();
  std::vector<ResultsLayer> facts(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    facts[i].kind = kinds[i];
    facts[i].present = !std::isnan(scales.at(i));
    facts[i].softmax_scale = facts[i].present ? scales[i] : 0;
  }
  const auto read_size = [&](const std::string& name, Index AttentionShape::*size) {
    const auto values = root.dataset(name).read<double>();
    for (std::size_t i = 0; i < facts.size(); ++i) {
      facts[i].shape.*size = facts[i].present ? static_cast<Index>(values.at(i)) : 0;
    }
  };
  read_size("n_q_heads", &AttentionShape::n_q_heads);
  read_size("n_kv_heads", &AttentionShape::n_kv_heads);
  read_size("k_head_dim", &AttentionShape::k_head_dim);
  read_size("v_head_dim", &AttentionShape::v_head_dim);
  read_size("n_tokens", &AttentionShape::n_tokens);
  read_size("n_keys", &AttentionShape::n_keys);
  return facts;
}

ResultsAxes read_axes(const Hdf5Group& root) {
  ResultsAxes axes;
  axes.config_ids = texts(root, "config");
  axes.parameters = read_parameters(root);
  axes.captures = read_captures(root);
  const auto layers = root.dataset("layer").read<std::int64_t>();
  axes.layers.assign(layers.begin(), layers.end());
  axes.n_q_heads = root.dataset("q_head").n_elements();
  axes.layer_facts = read_layer_facts(root);
  require<FormatError>(std::ssize(axes.layer_facts) == axes.n_captures() * axes.n_layers(),
                       "{}: layer_kind has {} values for {} captures and {} layers", root.where(),
                       axes.layer_facts.size(), axes.n_captures(), axes.n_layers());
  return axes;
}

void check_size(const Hdf5Dataset& dataset, Index expected) {
  require<FormatError>(dataset.n_elements() == expected, "{} has {} values where its axes say {}",
                       dataset.where(), dataset.n_elements(), expected);
}

/// Gives every computed cell the sink_mass of its layer.
void spread_sink_mass(const Hdf5Dataset& dataset, Results& results) {
  const ResultsAxes& axes = results.axes;
  check_size(dataset, axes.n_captures() * axes.n_layers() * axes.n_q_heads);
  const auto values = dataset.read<float>();
  for (Index config = 0; config < axes.n_configs(); ++config) {
    for (Index cell = 0; cell < axes.n_captures() * axes.n_layers(); ++cell) {
      const CellPlace place{config, cell / axes.n_layers(), cell % axes.n_layers()};
      if (results.has_cell(place)) {
        std::copy_n(values.begin() + cell * axes.n_q_heads, axes.n_q_heads,
                    results.heads(cell_column(CellCount::sink_mass), place).begin());
      }
    }
  }
}

void read_metrics(const Hdf5Group& root, Results& results) {
  const auto columns = cell_columns();
  const Index sink_mass = cell_column(CellCount::sink_mass);
  for (Index c = 0; c < std::ssize(columns); ++c) {
    if (c != sink_mass) {
      const Hdf5Dataset dataset = root.dataset(columns[static_cast<std::size_t>(c)].name);
      check_size(dataset, results.axes.n_values());
      const auto values = dataset.read<float>();
      std::ranges::copy(values, results.values.begin() + c * results.axes.n_values());
    }
  }
  spread_sink_mass(root.dataset("sink_mass"), results);
}

Provenance read_provenance(const Hdf5Group& group) {
  Provenance from;
  for (const auto& [name, field] : provenance_texts) {
    const auto values = texts(group, std::string(name));
    from.*field = values.empty() ? "" : values.front();
  }
  from.threads = group.attribute<std::int64_t>("threads");
  from.units_total = group.attribute<std::int64_t>("units_total");
  from.units_done = group.attribute<std::int64_t>("units_done");
  if (group.contains("failed")) {
    const auto captures = texts(group, "failed_capture");
    const auto layers = group.dataset("failed_layer").read<std::int64_t>();
    const auto reasons = texts(group, "failed_reason");
    for (std::size_t i = 0; i < captures.size(); ++i) {
      from.failed.push_back({captures[i], layers.at(i), reasons.at(i)});
    }
  }
  return from;
}

}  // namespace

Results read_results(const std::filesystem::path& path) {
  const Hdf5File file = Hdf5File::open_read_only(path);
  const Hdf5Group root = file.root();
  check_versions(root);
  const Hdf5Group provenance = root.group("provenance");
  SweepConstants constants;
  constants.sink_size = root.attribute<std::int64_t>("sink_size");
  constants.min_history = root.attribute<std::int64_t>("min_history");
  constants.by_chunk = provenance.attribute<std::int64_t>("by_chunk") != 0;
  constants.selections = provenance.attribute<std::int64_t>("selections") != 0;
  Results results = empty_results(constants, read_axes(root));
  read_metrics(root, results);
  results.provenance = read_provenance(provenance);
  return results;
}

}  // namespace quoka
