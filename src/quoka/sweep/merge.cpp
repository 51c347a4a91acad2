#include "quoka/sweep/merge.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "quoka/metrics/columns.hpp"
#include "quoka/sweep/part.hpp"

namespace quoka {
namespace {

namespace fs = std::filesystem;

constexpr float missing = std::numeric_limits<float>::quiet_NaN();

void copy_cell(const Results& from, CellPlace old_place, CellPlace place, Results& to) {
  const Index n_heads = std::min(from.axes.n_q_heads, to.axes.n_q_heads);
  for (Index c = 0; c < std::ssize(cell_columns()); ++c) {
    const std::span<float> heads = to.heads(c, place);
    for (Index head = 0; head < n_heads; ++head) {
      heads[static_cast<std::size_t>(head)] = from.value(c, old_place, head);
    }
  }
}

void copy_values(const Matrix& values, CellPlace place, Results& to) {
  for (Index c = 0; c < values.cols(); ++c) {
    const std::span<float> heads = to.heads(c, place);
    for (Index head = 0; head < values.rows(); ++head) {
      heads[static_cast<std::size_t>(head)] = values(head, c);
    }
  }
}

/// Collects the cells of parts into results.
class Collector {
 public:
  explicit Collector(Results& results) : results_(results) {}

  void add(CellPlace place, CellResult cell) {
    copy_values(cell.values, place, results_);
    n_chunks_ = std::max<Index>(n_chunks_, std::ssize(cell.chunks));
    cell.values.resize(0, 0);
    details_.push_back({place, std::move(cell)});
  }

  /// Fills by_chunk and selections, in the order of the axes.
  void finish() {
    std::ranges::sort(details_, [](const Detail& a, const Detail& b) {
      return std::tie(a.place.config, a.place.capture, a.place.layer) <
             std::tie(b.place.config, b.place.capture, b.place.layer);
    });
    if (results_.constants.by_chunk) {
      fill_chunks();
    }
    if (results_.constants.selections) {
      fill_selections();
    }
  }

 private:
  struct Detail {
    CellPlace place;
    CellResult cell;
  };

  void fill_chunks() {
    const ResultsAxes& axes = results_.axes;
    ChunkTable& table = results_.by_chunk.emplace();
    table.n_chunks = n_chunks_;
    const Index n_places = axes.n_configs() * axes.n_captures() * axes.n_layers() * n_chunks_;
    const Index n_values = std::ssize(chunk_columns()) * axes.n_values() * n_chunks_;
    table.begins.assign(static_cast<std::size_t>(n_places), missing);
    table.ends = table.begins;
    table.values.assign(static_cast<std::size_t>(n_values), missing);
    for (const Detail& detail : details_) {
      for (Index chunk = 0; chunk < std::ssize(detail.cell.chunks); ++chunk) {
        put_chunk(detail, chunk, table);
      }
    }
  }

  void put_chunk(const Detail& detail, Index chunk, ChunkTable& table) const {
    const ResultsAxes& axes = results_.axes;
    const CellPlace& place = detail.place;
    const Index cell =
        (place.config * axes.n_captures() + place.capture) * axes.n_layers() + place.layer;
    const auto at = static_cast<std::size_t>(cell * n_chunks_ + chunk);
    const IndexRange rows = detail.cell.chunks[static_cast<std::size_t>(chunk)];
    table.begins[at] = static_cast<double>(rows.begin);
    table.ends[at] = static_cast<double>(rows.end);
    const Matrix& values = detail.cell.chunk_values[static_cast<std::size_t>(chunk)];
    for (Index c = 0; c < values.cols(); ++c) {
      for (Index head = 0; head < values.rows(); ++head) {
        const Index row = c * axes.n_values() + cell * axes.n_q_heads + head;
        table.values[static_cast<std::size_t>(row * n_chunks_ + chunk)] = values(head, c);
      }
    }
  }

  void fill_selections() {
    SelectionTable& table = results_.selections.emplace();
    for (const Detail& detail : details_) {
      const auto layer = static_cast<std::size_t>(detail.place.layer);
      for (const KeptKeys& kept : detail.cell.kept) {
        table.config_index.push_back(detail.place.config);
        table.capture_index.push_back(detail.place.capture);
        table.layer_idx.push_back(results_.axes.layers[layer]);
        table.kv_head.push_back(kept.kv_head);
        table.chunk_begin.push_back(kept.chunk_begin);
        table.offset.push_back(std::ssize(table.key_indices));
        table.count.push_back(std::ssize(kept.key_indices));
        table.cut_score.push_back(kept.cut_score);
        table.cut_margin.push_back(kept.cut_margin);
        table.key_indices.insert(table.key_indices.end(), kept.key_indices.begin(),
                                 kept.key_indices.end());
      }
    }
  }

  Results& results_;
  std::vector<Detail> details_;
  Index n_chunks_ = 0;
};

/// Where each cell of the plan is in the results.
std::unordered_map<std::string, CellPlace> places_of(const SweepPlan& plan,
                                                     const ResultsAxes& axes) {
  std::unordered_map<std::string, CellPlace> places;
  for (const Unit& unit : missing_units(plan, {})) {
    const Index layer_idx = plan.captures[unit.place.capture].layers[unit.place.layer].layer_idx;
    const Index layer = std::ranges::find(axes.layers, layer_idx) - axes.layers.begin();
    for (std::size_t i = 0; i < unit.configs.size(); ++i) {
      places.emplace(unit.cell_ids[i], CellPlace{static_cast<Index>(unit.configs[i]),
                                                 static_cast<Index>(unit.place.capture), layer});
    }
  }
  return places;
}

}  // namespace

Results merge(const SweepPlan& plan, const std::unordered_map<std::string, fs::path>& parts,
              const ExistingOutput* existing) {
  Results results = empty_results(plan.constants, results_axes(plan));
  const auto places = places_of(plan, results.axes);
  if (existing != nullptr) {
    for (const auto& [id, old_place] : existing->cells) {
      copy_cell(existing->results, old_place, places.at(id), results);
    }
  }
  std::set<fs::path> files;
  for (const auto& [id, path] : parts) {
    if (places.contains(id)) {
      files.insert(path);
    }
  }
  Collector collector(results);
  for (const fs::path& path : files) {
    Part part = read_part(path);
    for (std::size_t i = 0; i < part.cell_ids.size(); ++i) {
      const auto place = places.find(part.cell_ids[i]);
      // A cell may be in two parts, of two grids; it has the same values in both.
      if (place != places.end() && parts.at(part.cell_ids[i]) == path) {
        collector.add(place->second, std::move(part.cells[i]));
      }
    }
  }
  collector.finish();
  return results;
}

}  // namespace quoka
