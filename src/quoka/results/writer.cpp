#include "quoka/results/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "quoka/hdf5/file.hpp"
#include "quoka/metrics/columns.hpp"
#include "quoka/results/axis_writer.hpp"

namespace quoka {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

using Names = std::vector<std::string>;

std::string_view name_of(Better better) {
  switch (better) {
    case Better::higher:
      return "higher";
    case Better::lower:
      return "lower";
    case Better::neither:
      break;
  }
  return "neither";
}

/// "12.5" to 12.5, "" (folded) to NaN.
double to_number(const std::string& text) {
  double value = nan_value;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::int64_t> count_up(Index n) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::string config_coordinates(const ResultsAxes& axes) {
  std::string names;
  for (const ConfigParameter& parameter : axes.parameters) {
    names += parameter.name + " ";
  }
  return names + "layer_kind";
}

void write_root_attributes(const Hdf5Group& root, const Results& results) {
  root.write_text_attribute("Conventions", "CF-1.8");
  root.write_text_attribute("title", "Attention replayed under key selection, compared to dense");
  root.write_text_attribute("history",
                            fmt::format("written by quoka-sweep {}", results.provenance.version));
  root.write_text_attribute("format", "quoka-results");
  root.write_attribute<std::int64_t>("format_version", results_format_version);
  root.write_attribute<std::int64_t>("metric_version", metric_version);
  root.write_attribute<std::int64_t>("sink_size", results.constants.sink_size);
  root.write_attribute<std::int64_t>("min_history", results.constants.min_history);
  root.write_text_attribute("quantiles",
                            "over all active rows, linear interpolation; above 65536 rows over "
                            "every k-th row");
}

/// The four dimensions, the parameters and layer_kind: what labels the metrics of a group.
void write_labels(AxisWriter& writer, const ResultsAxes& axes) {
  Names stems;
  for (const ResultsCapture& capture : axes.captures) {
    stems.push_back(capture.stem);
  }
  const std::vector<std::int64_t> layers(axes.layers.begin(), axes.layers.end());
  writer.add_dimension("config", axes.config_ids, "label of the configuration");
  writer.add_dimension("capture", stems, "capture file without folder and suffix");
  writer.add_dimension("layer", layers, "layer index in the model");
  writer.add_dimension("q_head", count_up(axes.n_q_heads), "query head");
  for (const ConfigParameter& parameter : axes.parameters) {
    const VariableText text{.long_name = parameter.help};
    if (parameter.is_number) {
      std::vector<double> numbers;
      for (const std::string& value : parameter.values) {
        numbers.push_back(to_number(value));
      }
      writer.add<double>(parameter.name, {"config"}, numbers, text);
    } else {
      writer.add_texts(parameter.name, {"config"}, parameter.values, text);
    }
  }
  Names kinds;
  for (const ResultsLayer& facts : axes.layer_facts) {
    kinds.push_back(facts.kind);
  }
  writer.add_texts("layer_kind", {"capture", "layer"}, kinds,
                   {.long_name = "what limits the keys of the layer, and how it marks positions",
                    .comment = "full, window, attention_chunk, unrotated, joined by +"});
}

void write_captures(AxisWriter& writer, const ResultsAxes& axes) {
  const auto add = [&](const std::string& name, std::string ResultsCapture::*field,
                       std::string_view long_name) {
    Names values;
    for (const ResultsCapture& capture : axes.captures) {
      values.push_back(capture.*field);
    }
    writer.add_texts(name, {"capture"}, values, {.long_name = long_name});
  };
  add("capture_sha256", &ResultsCapture::sha256, "SHA-256 of the capture file");
  add("capture_model_id", &ResultsCapture::model_id, "model of the capture");
  add("capture_verified", &ResultsCapture::verdict, "check against the capture's stored output");
}

void write_layer_facts(AxisWriter& writer, const ResultsAxes& axes) {
  const auto add = [&](const std::string& name, std::string_view long_name, auto value_of) {
    std::vector<double> values;
    for (const ResultsLayer& facts : axes.layer_facts) {
      values.push_back(facts.present ? static_cast<double>(value_of(facts)) : nan_value);
    }
    writer.add<double>(name, {"capture", "layer"}, values, {.long_name = long_name});
  };
  add("softmax_scale", "multiplier of the logits",
      [](const ResultsLayer& facts) { return facts.softmax_scale; });
  const auto add_size = [&](const std::string& name, std::string_view long_name,
                            Index AttentionShape::*size) {
    add(name, long_name, [size](const ResultsLayer& facts) { return facts.shape.*size; });
  };
  add_size("n_q_heads", "query heads", &AttentionShape::n_q_heads);
  add_size("n_kv_heads", "key and value heads", &AttentionShape::n_kv_heads);
  add_size("k_head_dim", "width of a query or key", &AttentionShape::k_head_dim);
  add_size("v_head_dim", "width of a value", &AttentionShape::v_head_dim);
  add_size("n_tokens", "query tokens", &AttentionShape::n_tokens);
  add_size("n_keys", "key tokens", &AttentionShape::n_keys);
}

/// [capture, layer, q_head] of the computed configuration with the smallest label.
std::vector<float> sink_mass(const Results& results) {
  const ResultsAxes& axes = results.axes;
  std::vector<Index> order(static_cast<std::size_t>(axes.n_configs()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {},
                    [&](Index c) { return axes.config_ids[static_cast<std::size_t>(c)]; });
  const Index column = cell_column(CellCount::sink_mass);
  std::vector<float> values;
  for (Index capture = 0; capture < axes.n_captures(); ++capture) {
    for (Index layer = 0; layer < axes.n_layers(); ++layer) {
      const auto found = std::ranges::find_if(order, [&](Index config) {
        return results.has_cell({config, capture, layer});
      });
      const Index config = found == order.end() ? 0 : *found;
      for (Index head = 0; head < axes.n_q_heads; ++head) {
        values.push_back(results.value(column, {config, capture, layer}, head));
      }
    }
  }
  return values;
}

void write_metrics(AxisWriter& writer, const Results& results) {
  const std::string coordinates = config_coordinates(results.axes);
  const auto columns = cell_columns();
  for (Index c = 0; c < std::ssize(columns); ++c) {
    const ColumnInfo& info = columns[static_cast<std::size_t>(c)];
    VariableText text{.long_name = info.long_name,
                      .comment = info.formula.empty() ? info.long_name : info.formula,
                      .better = name_of(info.better),
                      .coordinates = coordinates,
                      .units = info.units};
    if (c == cell_column(CellCount::sink_mass)) {
      text.coordinates = "layer_kind";
      writer.add<float>(info.name, {"capture", "layer", "q_head"}, sink_mass(results), text);
    } else {
      writer.add(info.name, {"config", "capture", "layer", "q_head"}, results.column(c), text);
    }
  }
}

void write_by_chunk(AxisWriter& writer, const Results& results) {
  const ChunkTable& table = *results.by_chunk;
  const std::string coordinates = config_coordinates(results.axes);
  write_labels(writer, results.axes);
  writer.add_dimension("chunk", count_up(table.n_chunks), "chunk of the prefill");
  const Names places{"config", "capture", "layer", "chunk"};
  writer.add<double>("chunk_begin", places, table.begins,
                     {.long_name = "absolute position of the chunk's first row"});
  writer.add<double>("chunk_end", places, table.ends,
                     {.long_name = "absolute position after the chunk's last row"});
  const auto size = static_cast<std::size_t>(results.axes.n_values() * table.n_chunks);
  std::span<const float> rest(table.values);
  for (const ColumnInfo& info : chunk_columns()) {
    writer.add(info.name, {"config", "capture", "layer", "q_head", "chunk"}, rest.first(size),
               {.long_name = info.long_name,
                .comment = info.formula.empty() ? info.long_name : info.formula,
                .better = name_of(info.better),
                .coordinates = coordinates,
                .units = info.units});
    rest = rest.subspan(size);
  }
}

void write_selections(AxisWriter& writer, const SelectionTable& table) {
  if (table.count.empty()) {
    return;  // no active chunk; a dimension of length 0 would be unlimited for netCDF tools
  }
  writer.add_dimension("selection", count_up(std::ssize(table.count)),
                       "one chunk and KV head of a configuration");
  writer.add_dimension("key", count_up(std::ssize(table.key_indices)), "one kept key");
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& values,
                       std::string_view long_name) {
    writer.add<std::int64_t>(name, {"selection"}, values, {.long_name = long_name});
  };
  add("config_index", table.config_index, "position along config of the root");
  add("capture_index", table.capture_index, "position along capture of the root");
  add("layer_idx", table.layer_idx, "layer index in the model");
  add("kv_head", table.kv_head, "key and value head");
  add("chunk_begin", table.chunk_begin, "absolute position of the chunk's first row");
  add("offset", table.offset, "first of the entry's keys in key_indices");
  add("count", table.count, "number of the entry's keys");
  writer.add<float>("cut_score", {"selection"}, table.cut_score,
                    {.long_name = "score of the last key kept by score"});
  writer.add<float>("cut_margin", {"selection"}, table.cut_margin,
                    {.long_name = "cut_score minus the score of the first rejected key"});
  writer.add<std::int32_t>("key_indices", {"key"}, table.key_indices,
                           {.long_name = "absolute position of a kept key"});
}

void write_failures(AxisWriter& writer, const std::vector<FailedUnit>& failed) {
  if (failed.empty()) {
    return;
  }
  Names captures;
  Names reasons;
  std::vector<std::int64_t> layers;
  for (const FailedUnit& unit : failed) {
    captures.push_back(unit.capture);
    reasons.push_back(unit.reason);
    layers.push_back(unit.layer_idx);
  }
  writer.add_dimension("failed", count_up(std::ssize(failed)), "failed unit");
  writer.add_texts("failed_capture", {"failed"}, captures, {});
  writer.add<std::int64_t>("failed_layer", {"failed"}, layers, {});
  writer.add_texts("failed_reason", {"failed"}, reasons, {});
}

void write_provenance(AxisWriter& writer, const Results& results) {
  const Provenance& from = results.provenance;
  for (const auto& [name, field] : provenance_texts) {
    writer.add_text(std::string(name), from.*field);
  }
  Names stems;
  Names paths;
  for (const ResultsCapture& capture : results.axes.captures) {
    stems.push_back(capture.stem);
    paths.push_back(capture.path);
  }
  writer.add_dimension("capture", stems, "capture file without folder and suffix");
  writer.add_texts("capture_path", {"capture"}, paths, {.long_name = "as given"});
  const Hdf5Group& group = writer.group();
  group.write_attribute<std::int64_t>("metric_version", metric_version);
  group.write_attribute<std::int64_t>("sink_size", results.constants.sink_size);
  group.write_attribute<std::int64_t>("min_history", results.constants.min_history);
  group.write_attribute<std::int64_t>("by_chunk", results.constants.by_chunk ? 1 : 0);
  group.write_attribute<std::int64_t>("selections", results.constants.selections ? 1 : 0);
  group.write_attribute<std::int64_t>("threads", from.threads);
  group.write_attribute<std::int64_t>("units_total", from.units_total);
  group.write_attribute<std::int64_t>("units_done", from.units_done);
  group.write_attribute<std::int64_t>("units_failed", std::ssize(from.failed));
  write_failures(writer, from.failed);
}

}  // namespace

std::string results_image(const Results& results) {
  Hdf5File file = Hdf5File::create_in_memory();
  {
    AxisWriter writer(file.root());
    write_root_attributes(writer.group(), results);
    write_labels(writer, results.axes);
    write_captures(writer, results.axes);
    write_layer_facts(writer, results.axes);
    write_metrics(writer, results);
  }
  if (results.by_chunk) {
    AxisWriter writer(file.root().create_group("by_chunk"));
    write_by_chunk(writer, results);
  }
  if (results.selections) {
    AxisWriter writer(file.root().create_group("selections"));
    write_selections(writer, *results.selections);
  }
  {
    AxisWriter writer(file.root().create_group("provenance"));
    write_provenance(writer, results);
  }
  return file.image();
}

}  // namespace quoka
