#include "quoka/results/writer.hpp"

#include <hdf5_hl.h>

#include <array>
#include <cmath>
#include <fstream>

#include "support/catch.hpp"
#include "support/raw_hdf5.hpp"
#include "support/temp_dir.hpp"
#include "unit/results/small_results.hpp"

using namespace quoka;

namespace {

// Everything here is read with plain HDF5 calls, not with our own reader.

std::filesystem::path write_file(const test::TempDir& folder, const Results& results) {
  const auto path = folder / "results.h5";
  std::ofstream(path, std::ios::binary) << results_image(results);
  return path;
}

std::vector<std::string> raw_texts(const std::filesystem::path& path, const char* name) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  const hid_t type = H5Dget_type(dataset);
  CHECK(H5Tis_variable_str(type) > 0);
  CHECK(H5Tget_cset(type) == H5T_CSET_UTF8);
  std::vector<char*> raw(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
  H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw.data());
  std::vector<std::string> texts(raw.begin(), raw.end());
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, raw.data());
  H5Tclose(type);
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(file);
  return texts;
}

/// Name of the dimension scale on each axis of a dataset, with its length.
std::vector<std::pair<std::string, hsize_t>> axes_of(const std::filesystem::path& path,
                                                     const char* name) {
  std::vector<std::pair<std::string, hsize_t>> axes;
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  std::array<hsize_t, 8> shape{};
  const int rank = H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  for (unsigned axis = 0; axis < static_cast<unsigned>(rank); ++axis) {
    std::string scale;
    const auto visit = [](hid_t, unsigned, hid_t id, void* out) -> herr_t {
      std::array<char, 64> text{};
      H5DSget_scale_name(id, text.data(), text.size());
      *static_cast<std::string*>(out) = text.data();
      return 1;
    };
    H5DSiterate_scales(dataset, axis, nullptr, visit, &scale);
    axes.emplace_back(scale, shape[axis]);
  }
  H5Sclose(space);
  H5Dclose(dataset);
  H5Fclose(file);
  return axes;
}

std::string raw_attribute(const std::filesystem::path& path, const char* object, const char* name) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t attribute = H5Aopen_by_name(file, object, name, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t type = H5Aget_type(attribute);
  std::string text(H5Tget_size(type), '\0');
  H5Aread(attribute, type, text.data());
  H5Tclose(type);
  H5Aclose(attribute);
  H5Fclose(file);
  return text.c_str();
}

bool exists(const std::filesystem::path& path, const char* name) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const bool found = H5Lexists(file, name, H5P_DEFAULT) > 0;
  H5Fclose(file);
  return found;
}

const std::vector<std::pair<std::string, hsize_t>> metric_axes{
    {"config", 3}, {"capture", 2}, {"layer", 2}, {"q_head", 3}};

}  // namespace

TEST_CASE("every metric is a variable on named axes with its text", "[results][writer]") {
  const test::TempDir folder;
  const auto path = write_file(folder, test::small_results());
  for (const ColumnInfo& info : cell_columns()) {
    INFO(info.name);
    const auto expected = info.name == "sink_mass"
                              ? std::vector(metric_axes.begin() + 1, metric_axes.end())
                              : metric_axes;
    CHECK(axes_of(path, info.name.c_str()) == expected);
    CHECK(raw_attribute(path, info.name.c_str(), "long_name") == info.long_name);
    CHECK(raw_attribute(path, info.name.c_str(), "units") == "1");
    CHECK_FALSE(raw_attribute(path, info.name.c_str(), "comment").empty());
  }
  CHECK(raw_attribute(path, "kl_mean", "better") == "lower");
  CHECK(raw_attribute(path, "kl_mean", "coordinates") ==
        "selector budget n_sel_queries budget_keys budget_percent layer_kind");
}

TEST_CASE("values stand where their labels say", "[results][writer]") {
  const test::TempDir folder;
  const auto path = write_file(folder, test::small_results());
  const auto values = test::raw_values<float>(path, "out_rel_l2_p99");
  const Index column = find_cell_column("out_rel_l2_p99");
  for (Index config = 0; config < 3; ++config) {
    for (Index capture = 0; capture < 2; ++capture) {
      for (Index layer = 0; layer < 2; ++layer) {
        for (Index head = 0; head < 3; ++head) {
          const Index at = ((config * 2 + capture) * 2 + layer) * 3 + head;
          const float value = values[static_cast<std::size_t>(at)];
          const bool absent = capture == 1 && (layer == 1 || head == 2);
          const bool failed = config == 0 && capture == 0 && layer == 1;
          INFO(config << ' ' << capture << ' ' << layer << ' ' << head);
          if (absent || failed) {
            CHECK(std::isnan(value));
          } else {
            CHECK(value == test::small_value(column, {config, capture, layer}, head));
          }
        }
      }
    }
  }
}

TEST_CASE("axes and parameters are labelled", "[results][writer]") {
  const test::TempDir folder;
  const auto path = write_file(folder, test::small_results());
  CHECK(raw_texts(path, "config") == std::vector<std::string>{"bb", "cc", "aa"});
  CHECK(raw_texts(path, "capture") == std::vector<std::string>{"a", "b"});
  CHECK(test::raw_values<std::int64_t>(path, "layer") == std::vector<std::int64_t>{3, 7});
  CHECK(test::raw_values<std::int64_t>(path, "q_head") == std::vector<std::int64_t>{0, 1, 2});
  CHECK(raw_texts(path, "budget") == std::vector<std::string>{"64", "12.5%", "64"});
  const auto rows = test::raw_values<double>(path, "n_sel_queries");
  CHECK(rows[0] == 16);
  CHECK(std::isnan(rows[2]));
  CHECK(test::raw_values<double>(path, "budget_percent")[1] == 12.5);
  CHECK(raw_texts(path, "layer_kind") ==
        std::vector<std::string>{"full", "full", "window+unrotated", ""});
  const auto scales = test::raw_values<double>(path, "softmax_scale");
  CHECK(scales[2] == 0.5);
  CHECK(std::isnan(scales[3]));
  CHECK(test::raw_values<double>(path, "n_keys")[2] == 50);
  CHECK(raw_texts(path, "capture_sha256") == std::vector<std::string>{"11ff", "22ee"});
  CHECK(raw_texts(path, "capture_verified") ==
        std::vector<std::string>{"not verified", "not verified"});
}

TEST_CASE("sink mass comes from the computed configuration with the smallest label",
          "[results][writer]") {
  const test::TempDir folder;
  const Index column = cell_column(CellCount::sink_mass);
  Results results = test::small_results();
  auto values = test::raw_values<float>(write_file(folder, results), "sink_mass");
  CHECK(values[3] == test::small_value(column, {2, 0, 1}, 0));  // aa is configuration 2
  for (float& n_rows : results.heads(cell_column(CellCount::n_rows), {2, 0, 1})) {
    n_rows = std::nanf("");  // aa is gone, bb has failed there
  }
  values = test::raw_values<float>(write_file(folder, results), "sink_mass");
  CHECK(values[3] == test::small_value(column, {1, 0, 1}, 0));
}

TEST_CASE("equal results give equal bytes", "[results][writer]") {
  CHECK(results_image(test::small_results()) == results_image(test::small_results()));
}

TEST_CASE("P39 failed units and constants are in the provenance", "[results][writer]") {
  const test::TempDir folder;
  const auto path = write_file(folder, test::small_results());
  CHECK(raw_texts(path, "provenance/failed_capture") == std::vector<std::string>{"a"});
  CHECK(test::raw_values<std::int64_t>(path, "provenance/failed_layer") ==
        std::vector<std::int64_t>{7});
  CHECK(raw_texts(path, "provenance/failed_reason") == std::vector<std::string>{"a reason"});
  CHECK(raw_texts(path, "provenance/capture_path") ==
        std::vector<std::string>{"data/a.h5", "b.h5"});
  CHECK(raw_texts(path, "provenance/command_line") ==
        std::vector<std::string>{"quoka-sweep run x.toml"});
  CHECK_FALSE(exists(path, "by_chunk"));
  CHECK_FALSE(exists(path, "selections"));
}

TEST_CASE("P36 a configuration text beyond the limit of attributes is stored whole",
          "[results][writer]") {
  const test::TempDir folder;
  Results results = test::small_results();
  results.provenance.config_text = std::string(100'000, 'x');
  const auto path = write_file(folder, results);
  CHECK(raw_texts(path, "provenance/config_text").front() == results.provenance.config_text);
}

TEST_CASE("means per chunk have a chunk axis", "[results][writer]") {
  const test::TempDir folder;
  Results results = test::small_results();
  ChunkTable& table = results.by_chunk.emplace();
  table.n_chunks = 5;
  const auto n = static_cast<std::size_t>(results.axes.n_values() * 5);
  for (std::size_t i = 0; i < chunk_columns().size() * n; ++i) {
    table.values.push_back(static_cast<float>(i));
  }
  table.begins.assign(3 * 2 * 2 * 5, 1.0);
  table.ends.assign(3 * 2 * 2 * 5, 2.0);
  const auto path = write_file(folder, results);
  auto axes = metric_axes;
  axes.emplace_back("chunk", 5);
  CHECK(axes_of(path, "by_chunk/state") == axes);
  axes.erase(axes.begin() + 3);
  CHECK(axes_of(path, "by_chunk/chunk_begin") == axes);
  const auto state = test::raw_values<float>(path, "by_chunk/state");
  CHECK(state.front() == static_cast<float>((chunk_columns().size() - 1) * n));
  CHECK(raw_texts(path, "by_chunk/selector") == raw_texts(path, "selector"));
}

TEST_CASE("kept keys are a flat list with one entry per chunk and head", "[results][writer]") {
  const test::TempDir folder;
  Results results = test::small_results();
  SelectionTable& table = results.selections.emplace();
  table = {{0, 2}, {0, 1}, {3, 7},        {0, 1},       {32, 64},
           {0, 2}, {2, 1}, {0.5F, 0.25F}, {0.1F, 0.2F}, {}};
  table.key_indices = {4, 9, 1};
  const auto path = write_file(folder, results);
  CHECK(axes_of(path, "selections/count") ==
        std::vector<std::pair<std::string, hsize_t>>{{"selection", 2}});
  CHECK(test::raw_values<std::int32_t>(path, "selections/key_indices") ==
        std::vector<std::int32_t>{4, 9, 1});
  CHECK(test::raw_values<std::int64_t>(path, "selections/offset") ==
        std::vector<std::int64_t>{0, 2});
  CHECK(test::raw_values<std::int64_t>(path, "selections/layer_idx") ==
        std::vector<std::int64_t>{3, 7});
}

TEST_CASE("no kept keys at all leave an empty group", "[results][writer]") {
  const test::TempDir folder;
  Results results = test::small_results();
  results.selections.emplace();
  const auto path = write_file(folder, results);
  CHECK(exists(path, "selections"));
  CHECK_FALSE(exists(path, "selections/key"));
}
