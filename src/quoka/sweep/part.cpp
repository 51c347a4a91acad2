#include "quoka/sweep/part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "quoka/core/build_info.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/sha256.hpp"
#include "quoka/hdf5/file.hpp"
#include "quoka/metrics/columns.hpp"
#include "quoka/results/provenance.hpp"

namespace quoka {
namespace {

constexpr std::int64_t part_version = 1;
constexpr std::string_view seal_word = "\nquoka-part sha256 ";
constexpr std::size_t seal_size = seal_word.size() + 64 + 1;

std::string sealed(const std::string& image) {
  return fmt::format("{}{}{}\n", image, seal_word, sha256_hex(image));
}

void check_seal(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream stream;
  stream << file.rdbuf();
  require<IoError>(file.good() || file.eof(), "part file {} cannot be read", path.string());
  const std::string bytes = std::move(stream).str();
  const bool intact =
      bytes.size() > seal_size && sealed(bytes.substr(0, bytes.size() - seal_size)) == bytes;
  require<FormatError>(intact, "part file {} does not fit its checksum (it is damaged)",
                       path.string());
}

// Flat lists only: a missing dataset is an empty list.

template <typename T>
void put(const Hdf5Group& group, const std::string& name, ElementType type,
         const std::vector<T>& values) {
  if (!values.empty()) {
    group.create_dataset(name, type, {std::ssize(values)}).write(std::span<const T>(values));
  }
}

template <typename T>
std::vector<T> get(const Hdf5Group& group, const std::string& name) {
  return group.contains(name) ? group.dataset(name).read<T>() : std::vector<T>{};
}

void append(std::vector<float>& list, const Matrix& values) {
  list.insert(list.end(), values.data(), values.data() + values.size());
}

/// Hands out consecutive pieces of a list. Throws: FormatError at its end.
template <typename T>
class Pieces {
 public:
  explicit Pieces(std::vector<T> list) : list_(std::move(list)) {}

  std::span<const T> next(Index n) {
    const auto size = static_cast<std::size_t>(n);
    require<FormatError>(n >= 0 && size <= list_.size() - used_,
                         "a part file holds fewer values than its counts say");
    used_ += size;
    return std::span<const T>(list_).subspan(used_ - size, size);
  }
  T one() { return next(1).front(); }

 private:
  std::vector<T> list_;
  std::size_t used_ = 0;
};

Matrix matrix(Pieces<float>& pieces, Index rows, Index columns) {
  const auto values = pieces.next(rows * columns);
  return ConstMatrixView(values.data(), rows, columns);
}

void put_chunks(const Hdf5Group& group, const std::vector<CellResult>& cells) {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> bounds;
  std::vector<float> values;
  for (const CellResult& cell : cells) {
    counts.push_back(std::ssize(cell.chunks));
    for (const IndexRange chunk : cell.chunks) {
      bounds.insert(bounds.end(), {chunk.begin, chunk.end});
    }
    for (const Matrix& chunk : cell.chunk_values) {
      append(values, chunk);
    }
  }
  put(group, "chunk_counts", ElementType::int64, counts);
  put(group, "chunk_bounds", ElementType::int64, bounds);
  put(group, "chunk_values", ElementType::float32, values);
}

void get_chunks(const Hdf5Group& group, Index n_heads, std::vector<CellResult>& cells) {
  Pieces<std::int64_t> counts(get<std::int64_t>(group, "chunk_counts"));
  Pieces<std::int64_t> bounds(get<std::int64_t>(group, "chunk_bounds"));
  Pieces<float> values(get<float>(group, "chunk_values"));
  for (CellResult& cell : cells) {
    const Index n_chunks = counts.one();
    for (Index i = 0; i < n_chunks; ++i) {
      const Index begin = bounds.one();
      cell.chunks.push_back({begin, bounds.one()});
      cell.chunk_values.push_back(matrix(values, n_heads, std::ssize(chunk_columns())));
    }
  }
}

void put_kept(const Hdf5Group& group, const std::vector<CellResult>& cells) {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> places;
  std::vector<float> scores;
  std::vector<std::int32_t> keys;
  for (const CellResult& cell : cells) {
    counts.push_back(std::ssize(cell.kept));
    for (const KeptKeys& kept : cell.kept) {
      places.insert(places.end(), {kept.chunk_begin, kept.kv_head, std::ssize(kept.key_indices)});
      scores.insert(scores.end(), {kept.cut_score, kept.cut_margin});
      keys.insert(keys.end(), kept.key_indices.begin(), kept.key_indices.end());
    }
  }
  put(group, "kept_counts", ElementType::int64, counts);
  put(group, "kept_places", ElementType::int64, places);
  put(group, "kept_scores", ElementType::float32, scores);
  put(group, "kept_keys", ElementType::int32, keys);
}

void get_kept(const Hdf5Group& group, std::vector<CellResult>& cells) {
  Pieces<std::int64_t> counts(get<std::int64_t>(group, "kept_counts"));
  Pieces<std::int64_t> places(get<std::int64_t>(group, "kept_places"));
  Pieces<float> scores(get<float>(group, "kept_scores"));
  Pieces<std::int32_t> keys(get<std::int32_t>(group, "kept_keys"));
  for (CellResult& cell : cells) {
    const Index n_kept = counts.one();
    for (Index i = 0; i < n_kept; ++i) {
      KeptKeys kept;
      kept.chunk_begin = places.one();
      kept.kv_head = places.one();
      const auto positions = keys.next(places.one());
      kept.key_indices.assign(positions.begin(), positions.end());
      kept.cut_score = scores.one();
      kept.cut_margin = scores.one();
      cell.kept.push_back(std::move(kept));
    }
  }
}

Hdf5Group open_checked(const Hdf5File& file) {
  Hdf5Group root = file.root();
  const auto version = root.attribute<std::int64_t>("part_version");
  require<FormatError>(version == part_version, "{}: part_version {} is not {}", root.where(),
                       version, part_version);
  return root;
}

}  // namespace

std::string encode_part(const Part& part) {
  Hdf5File file = Hdf5File::create_in_memory();
  {
    const Hdf5Group root = file.root();
    root.write_attribute<std::int64_t>("part_version", part_version);
    root.write_text_attribute("unit_id", part.unit_id);
    root.write_text_attribute("plan_hash", part.plan_hash);
    root.write_text_attribute("program_version", build_info().version);
    root.write_text_attribute("host", host_name());
    root.write_text_attribute("started_utc", part.started_utc);
    root.write_text_attribute("finished_utc", part.finished_utc);
    root.write_attribute<std::int64_t>("n_q_heads", part.cells.front().values.rows());
    root.create_texts("cell_ids", {std::ssize(part.cell_ids)}, part.cell_ids);
    std::vector<float> values;
    for (const CellResult& cell : part.cells) {
      append(values, cell.values);
    }
    put(root, "values", ElementType::float32, values);
    put_chunks(root, part.cells);
    put_kept(root, part.cells);
  }
  return sealed(file.image());
}

std::vector<std::string> read_part_ids(const std::filesystem::path& path) {
  check_seal(path);
  const Hdf5File file = Hdf5File::open_read_only(path);
  return open_checked(file).dataset("cell_ids").read_texts();
}

Part read_part(const std::filesystem::path& path) {
  check_seal(path);
  const Hdf5File file = Hdf5File::open_read_only(path);
  const Hdf5Group root = open_checked(file);
  Part part;
  part.unit_id = root.attribute<std::string>("unit_id");
  part.plan_hash = root.attribute<std::string>("plan_hash");
  part.started_utc = root.attribute<std::string>("started_utc");
  part.finished_utc = root.attribute<std::string>("finished_utc");
  part.cell_ids = root.dataset("cell_ids").read_texts();
  const Index n_heads = root.attribute<std::int64_t>("n_q_heads");
  Pieces<float> values(get<float>(root, "values"));
  for (std::size_t i = 0; i < part.cell_ids.size(); ++i) {
    part.cells.push_back({matrix(values, n_heads, std::ssize(cell_columns())), {}, {}, {}});
  }
  get_chunks(root, n_heads, part.cells);
  get_kept(root, part.cells);
  return part;
}

}  // namespace quoka
