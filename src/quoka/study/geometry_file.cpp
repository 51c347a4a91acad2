#include "quoka/study/geometry_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "quoka/hdf5/file.hpp"
#include "quoka/results/axis_writer.hpp"

namespace quoka {
namespace {

using Names = std::vector<std::string>;

void write_root(const AxisWriter& writer, const GeometryFile& file) {
  const Hdf5Group& root = writer.group();
  root.write_text_attribute("Conventions", "CF-1.8");
  root.write_text_attribute("title", "Geometry of the queries and keys of attention layers");
  root.write_text_attribute("history",
                            fmt::format("written by quoka-geometry {}", file.provenance.version));
  root.write_text_attribute("format", "quoka-geometry");
  root.write_attribute<std::int64_t>("format_version", geometry_format_version);
  root.write_attribute<std::int64_t>("chunk_size", file.settings.chunk_size);
  root.write_attribute<std::int64_t>("n_sel_queries", file.settings.n_sel_queries);
  root.write_text_attribute("budget", file.settings.budget.text());
  root.write_attribute<std::int64_t>("sink_size", file.settings.sink_size);
  root.write_attribute<std::int64_t>("samples", file.settings.n_samples);
  root.write_text_attribute("seed", fmt::format("{}", file.settings.seed));
}

void write_capture(AxisWriter& writer, const ResultsCapture& capture) {
  writer.add_text("capture", capture.stem);
  writer.add_text("capture_sha256", capture.sha256);
  writer.add_text("capture_model_id", capture.model_id);
  writer.add_text("capture_verified", capture.verdict);
}

void write_layers(AxisWriter& writer, const std::vector<ResultsLayer>& layers) {
  Names kinds;
  std::vector<double> scales;
  for (const ResultsLayer& layer : layers) {
    kinds.push_back(layer.kind);
    scales.push_back(layer.softmax_scale);
  }
  writer.add_texts("layer_kind", {"layer"}, kinds,
                   {.long_name = "what limits the keys of the layer, and how it marks positions"});
  writer.add<double>("softmax_scale", {"layer"}, scales, {.long_name = "multiplier of the logits"});
  const auto add = [&](const std::string& name, std::string_view long_name,
                       Index AttentionShape::*size) {
    std::vector<std::int64_t> values;
    for (const ResultsLayer& layer : layers) {
      values.push_back(layer.shape.*size);
    }
    writer.add<std::int64_t>(name, {"layer"}, values, {.long_name = long_name});
  };
  add("n_q_heads", "query heads", &AttentionShape::n_q_heads);
  add("n_kv_heads", "key and value heads", &AttentionShape::n_kv_heads);
  add("k_head_dim", "width of a query or key", &AttentionShape::k_head_dim);
  add("n_tokens", "query tokens", &AttentionShape::n_tokens);
  add("n_keys", "key tokens", &AttentionShape::n_keys);
}

bool is_sampled(const GeometryVariable& variable) {
  return std::ranges::find(variable.dimensions, "query") != variable.dimensions.end() ||
         std::ranges::find(variable.dimensions, "key") != variable.dimensions.end();
}

void write_variables(AxisWriter& writer, const GeometryTable& table) {
  for (const GeometryVariable& variable : geometry_variables()) {
    const VariableText text{.long_name = variable.long_name,
                            .comment = variable.comment,
                            .coordinates = "layer_kind",
                            .units = variable.units};
    const std::span<const double> values = table.values(variable.name);
    if (is_sampled(variable)) {
      std::vector<float> narrow(values.size());
      std::ranges::transform(values, narrow.begin(),
                             [](double value) { return static_cast<float>(value); });
      writer.add<float>(variable.name, variable.dimensions, narrow, text);
    } else {
      writer.add<double>(variable.name, variable.dimensions, values, text);
    }
  }
}

void write_provenance(AxisWriter& writer, const GeometryFile& file) {
  const Provenance& from = file.provenance;
  for (const auto& [name, field] : provenance_texts) {
    if (name != "plan_hash") {  // a study has no plan
      writer.add_text(std::string(name), from.*field);
    }
  }
  writer.add_text("capture_path", file.capture.path);
  const Hdf5Group& group = writer.group();
  group.write_attribute<std::int64_t>("threads", from.threads);
  group.write_attribute<std::int64_t>("units_total", from.units_total);
  group.write_attribute<std::int64_t>("units_done", from.units_done);
  group.write_attribute<std::int64_t>("units_failed", std::ssize(from.failed));
  if (from.failed.empty()) {
    return;
  }
  std::vector<std::int64_t> layers;
  Names reasons;
  for (const FailedUnit& unit : from.failed) {
    layers.push_back(unit.layer_idx);
    reasons.push_back(unit.reason);
  }
  std::vector<std::int64_t> count(layers.size());
  std::iota(count.begin(), count.end(), 0);
  writer.add_dimension("failed", count, "failed layer");
  writer.add<std::int64_t>("failed_layer", {"failed"}, layers, {.long_name = "layer index"});
  writer.add_texts("failed_reason", {"failed"}, reasons, {.long_name = "why it has no values"});
}

}  // namespace

std::string settings_text(const StudySettings& settings) {
  const std::string chunk_size =
      settings.whole_prompt() ? "\"whole\"" : fmt::format("{}", settings.chunk_size);
  return fmt::format(
      "chunk_size = {}\nn_sel_queries = {}\nbudget = \"{}\"\nsink_size = {}\nsamples = {}\nseed = "
      "{}\n",
      chunk_size, settings.n_sel_queries, settings.budget.text(), settings.sink_size,
      settings.n_samples, settings.seed);
}

std::string geometry_image(const GeometryFile& file) {
  Hdf5File hdf5 = Hdf5File::create_in_memory();
  {
    AxisWriter writer(hdf5.root());
    write_root(writer, file);
    for (const GeometryDimension& dimension : file.table.dimensions()) {
      writer.add_dimension(dimension.name, dimension.labels, dimension.long_name);
    }
    write_capture(writer, file.capture);
    write_layers(writer, file.layers);
    write_variables(writer, file.table);
  }
  {
    AxisWriter writer(hdf5.root().create_group("provenance"));
    write_provenance(writer, file);
  }
  return hdf5.image();
}

}  // namespace quoka
