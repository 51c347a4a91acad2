#include "quoka/capture/import.hpp"

#include <cstring>
#include <fstream>
#include <map>

#include "quoka/capture/cut.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/sha256.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace quoka {
namespace {

using namespace test;

// A safetensors file in the making: 4 query and 2 KV heads, 3 queries at position 2, 5 keys.
struct Draft {
  struct Entry {
    std::string dtype;
    std::string shape;
    std::string data;
  };
  std::map<std::string, Entry> tensors;
  std::map<std::string, std::string> metadata;

  void write(const std::filesystem::path& path) const {
    std::string header = "{\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      header += (header.back() == '{' ? "\"" : ",\"") + key + "\":\"" + value + "\"";
    }
    header += "}";
    std::string data;
    for (const auto& [name, entry] : tensors) {
      header += ",\"" + name + "\":{\"dtype\":\"" + entry.dtype + "\",\"shape\":" + entry.shape +
                ",\"data_offsets\":[" + std::to_string(data.size()) + "," +
                std::to_string(data.size() + entry.data.size()) + "]}";
      data += entry.data;
    }
    header += "}";
    const std::uint64_t length = header.size();
    std::string prefix(8, '\0');
    std::memcpy(prefix.data(), &length, 8);
    std::ofstream(path, std::ios::binary) << prefix << header << data;
  }
};

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// bfloat16 patterns of every kind: NaN with payloads, infinities, -0, subnormals.
std::string patterns(std::size_t n) {
  std::vector<std::uint16_t> bits;
  for (std::size_t i = 0; i < n; ++i) {
    bits.push_back(static_cast<std::uint16_t>(40503 * i + 0x7f81));
  }
  return bytes_of(bits);
}

Draft make_draft() {
  Draft draft;
  const std::string ids = bytes_of<std::int32_t>({11, 12, 13, 14, 15});
  draft.tensors = {
      {"layers.007.q", {"BF16", "[4,3,6]", patterns(72)}},
      {"layers.007.k", {"BF16", "[2,5,6]", patterns(60)}},
      {"layers.007.v", {"BF16", "[2,5,4]", patterns(40)}},
      {"layers.007.lse", {"F32", "[4,3]", bytes_of(std::vector<float>(12, 1.5F))}},
      {"layers.007.sinks", {"F32", "[4]", bytes_of<float>({1, 2, 3, 4})}},
      {"tokens.ids", {"I32", "[5]", ids}},
      {"tokens.positions", {"I64", "[5]", bytes_of<std::int64_t>({0, 1, 2, 3, 4})}},
      {"annotations.start", {"I64", "[1]", bytes_of<std::int64_t>({1})}},
      {"annotations.end", {"I64", "[1]", bytes_of<std::int64_t>({3})}},
      {"annotations.kind", {"I32", "[1]", bytes_of<std::int32_t>({1})}},
      {"annotations.group", {"I32", "[1]", bytes_of<std::int32_t>({9})}},
  };
  for (const CaptureTextAttribute& row : capture_text_attributes()) {
    draft.metadata[std::string(row.name)] = "unknown";
  }
  draft.metadata["token_ids_sha256"] = sha256_hex(ids);
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"format", "qkv-capture"},
                                          {"format_version", "1"},
                                          {"stage", "post_norm_post_rope_pre_repeat_kv"},
                                          {"num_hidden_layers", "8"}}) {
    draft.metadata[name] = value;
  }
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"layer_index", "7"},
                                          {"n_q_heads", "4"},
                                          {"n_kv_heads", "2"},
                                          {"k_head_dim", "6"},
                                          {"v_head_dim", "4"},
                                          {"softmax_scale", "0.40824829046386302"},
                                          {"causal", "1"},
                                          {"q_offset", "2"},
                                          {"sliding_window", "4"},
                                          {"attention_chunk", "0"},
                                          {"logit_softcap", "50"},
                                          {"softcap_applied", "1"},
                                          {"has_sinks", "1"},
                                          {"alibi", "0"},
                                          {"alibi_scaled", "0"},
                                          {"position_kind", "rope"},
                                          {"qk_norm", "none"},
                                          {"kv_shared_from", "-1"},
                                          {"v_equals_k_prefix", "0"},
                                          {"out_kind", "fp32_from_stored"}}) {
    draft.metadata["layers.007." + name] = value;
  }
  return draft;
}

void check_refused(const Draft& draft, const std::string& message) {
  const TempDir directory;
  draft.write(directory / "in.safetensors");
  INFO(message);
  CHECK_THROWS_WITH(import_safetensors(directory / "in.safetensors", directory / "out.h5"),
                    contains(message));
  CHECK_FALSE(std::filesystem::exists(directory / "out.h5"));
}

}  // namespace

TEST_CASE("P12 an imported capture holds the same bits and attributes", "[capture][import]") {
  const TempDir directory;
  make_draft().write(directory / "in.safetensors");
  import_safetensors(directory / "in.safetensors", directory / "out.h5");
  const CaptureReader reader(directory / "out.h5");
  const CaptureLayer& layer = reader.layer(7);
  CHECK(layer.shape == AttentionShape{4, 2, 3, 5, 6, 4});
  CHECK(layer.rules.scale == 0.40824829046386302);
  CHECK(layer.rules.q_offset == 2);
  CHECK(layer.rules.sliding_window == 4);
  CHECK(layer.rules.softcap == 50);
  CHECK(layer.rules.sinks == std::vector<float>{1, 2, 3, 4});
  CHECK(layer.has_lse);
  CHECK_FALSE(layer.has_out);
  CHECK(reader.info().storage_dtype == "bfloat16");
  CHECK(reader.annotations()[0] == Annotation{{1, 3}, AnnotationKind::needle, 9, ""});
  const auto checksums = tensor_checksums(reader);
  CHECK(checksums.at(0).sha256 == sha256_hex(patterns(72)));
  CHECK(checksums.at(1).sha256 == sha256_hex(patterns(60)));
  CHECK(checksums.at(2).sha256 == sha256_hex(patterns(40)));
}

TEST_CASE("nothing is guessed when an attribute is missing", "[capture][import]") {
  for (const auto& [name, value] : make_draft().metadata) {
    Draft draft = make_draft();
    draft.metadata.erase(name);
    check_refused(draft, "has no '" + name + "'");
  }
}

TEST_CASE("tensors that are missing or unknown or do not fit are refused", "[capture][import]") {
  const auto without = [](const char* name) {
    Draft draft = make_draft();
    draft.tensors.erase(name);
    return draft;
  };
  check_refused(without("layers.007.k"), "'layers.007.k' is missing");
  check_refused(without("layers.007.v"), "'layers.007.v' is missing");
  check_refused(without("layers.007.sinks"), "'layers.007.sinks' is missing");
  check_refused(without("layers.007.q"), "no tensor layers.LLL.q");
  check_refused(without("tokens.ids"), "'tokens.ids' is missing");
  check_refused(without("annotations.kind"), "'annotations.kind' is missing");

  Draft draft = make_draft();
  draft.tensors["layers.007.sink"] = {"F32", "[0]", ""};
  check_refused(draft, "'layers.007.sink' is none of the capture format");
  draft = make_draft();
  draft.tensors["layers.007.v"] = {"BF16", "[2,4,5]", patterns(40)};
  check_refused(draft, "has shape [2, 4, 5], the attributes and other tensors say [2, 5, 4]");
  draft = make_draft();
  draft.tensors["layers.007.v"] = {"F16", "[2,5,4]", patterns(40)};
  check_refused(draft, "another number format than q");
  draft = make_draft();
  draft.tensors["layers.007.q"] = {"BF16", "[1,4,3,6]", patterns(72)};
  check_refused(draft, "instead of three axes");
  draft = make_draft();
  draft.tensors["layers.007.q"] = {"I32", "[4,3,3]", patterns(72)};
  check_refused(draft, "holds whole numbers");
}

TEST_CASE("attributes with wrong values are refused", "[capture][import]") {
  const auto with = [](const std::string& name, const std::string& value) {
    Draft draft = make_draft();
    draft.metadata[name] = value;
    return draft;
  };
  check_refused(with("format", "pt"), "'format' is 'pt'");
  check_refused(with("stage", "pre_rope"), "'stage' is 'pre_rope'");
  check_refused(with("layers.007.softmax_scale", "0.5x"), "'0.5x', not a number");
  check_refused(with("layers.007.softmax_scale", "nan"), "softmax_scale");
  check_refused(with("layers.007.n_q_heads", "4.0"), "not a whole number");
  check_refused(with("layers.007.causal", "0"), "causal");
  check_refused(with("layers.007.causal", "true"), "not a whole number");
  check_refused(with("layers.007.layer_index", "8"), "the name says 7");
  check_refused(with("layers.007.out_kind", "guess"), "out_kind");
  check_refused(with("layers.007.sliding_windw", "4"), "is no attribute of the capture format");
  check_refused(with("num_hidden_layers", "7"), "num_hidden_layers is 7");
  check_refused(with("token_ids_sha256", "0"), "of another prompt");
}

TEST_CASE("an existing file is not overwritten by an import", "[capture][import]") {
  const TempDir directory;
  make_draft().write(directory / "in.safetensors");
  std::ofstream(directory / "out.h5") << "mine";
  CHECK_THROWS_AS(import_safetensors(directory / "in.safetensors", directory / "out.h5"),
                  ConfigError);
  CHECK(std::filesystem::file_size(directory / "out.h5") == 4);
}

}  // namespace quoka
