#include "quoka/study/geometry_file.hpp"

#include <fstream>

#include "quoka/study/measure_layer.hpp"
#include "support/catch.hpp"
#include "support/raw_hdf5.hpp"
#include "support/temp_dir.hpp"
#include "support/tiny_layer.hpp"

namespace {

using namespace quoka;
using namespace quoka::test;

/// Two layers of other sizes, the second without values.
GeometryFile tiny_file() {
  const TinyLayer layer = tiny_layer({}, 1);
  const StudySettings settings{.chunk_size = 16, .n_samples = 20};
  const StudySamples samples = study_samples(layer.shape, settings);
  GeometryFile file{.capture = {.stem = "tiny", .path = "tiny.h5", .sha256 = "ab", .model_id = "m"},
                    .layers = {},
                    .settings = settings,
                    .table = GeometryTable(study_dimensions({.layers = {3, 5},
                                                             .n_q_heads = 8,
                                                             .n_kv_heads = 2,
                                                             .head_dim = 8,
                                                             .n_tokens = 53,
                                                             .chunk_size = 16,
                                                             .query_samples = samples.queries,
                                                             .key_samples = samples.keys})),
                    .provenance = {}};
  file.layers = {{true, "full", 0.5, layer.shape}, {true, "window", 0.25, layer.shape}};
  file.provenance.failed = {{"tiny", 5, "no reason"}};
  measure_layer(layer.input(), 0, settings, samples, file.table);
  return file;
}

TEST_CASE("Plain HDF5 calls read what the table holds", "[study][file]") {
  const GeometryFile file = tiny_file();
  const TempDir folder;
  const std::string image = geometry_image(file);
  std::ofstream(folder / "g.h5", std::ios::binary) << image;
  const auto statistic = raw_values<double>(folder / "g.h5", "query_norm_mean");
  REQUIRE(statistic.size() == 2 * 8);
  CHECK(statistic[4] == file.table.head("query_norm_mean", 0, 4)[0]);
  CHECK(std::isnan(statistic[6]));  // the layer has 6 query heads
  CHECK(std::isnan(statistic[8]));  // the second layer failed
  const auto sampled = raw_values<double>(folder / "g.h5", "query_similarity");
  REQUIRE(sampled.size() == 2 * 8 * 20);
  CHECK(sampled[20 + 7] ==
        static_cast<double>(static_cast<float>(file.table.head("query_similarity", 0, 1)[7])));
  CHECK(raw_values<std::int64_t>(folder / "g.h5", "layer") == std::vector<std::int64_t>{3, 5});
  CHECK(raw_values<std::int64_t>(folder / "g.h5", "chunk") ==
        std::vector<std::int64_t>{0, 16, 32, 48});
  CHECK(raw_values<std::int64_t>(folder / "g.h5", "provenance/failed_layer") ==
        std::vector<std::int64_t>{5});
}

TEST_CASE("The same study gives the same bytes", "[study][file]") {
  CHECK(geometry_image(tiny_file()) == geometry_image(tiny_file()));
}

TEST_CASE("Settings are written as one writes them", "[study][file]") {
  CHECK(settings_text({.chunk_size = 0, .seed = 7}) ==
        "chunk_size = \"whole\"\nn_sel_queries = 16\nbudget = \"1024\"\nsink_size = 4\nsamples = "
        "1024\nseed = 7\n");
}

}  // namespace
