// Captures with one fault each: the reader must refuse them and name the fault.
#include <fstream>
#include <iterator>
#include <limits>

#include "quoka/capture/reader.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/half.hpp"
#include "support/catch.hpp"
#include "support/raw_hdf5.hpp"
#include "support/temp_dir.hpp"
#include "support/tiny.hpp"

namespace quoka {
namespace {

using namespace test;

constexpr const char* layer = "/layers/001";

struct Fault {
  const char* expected;  // part of the message
  std::function<void(hid_t)> make;
};

void check_faults(const std::vector<Fault>& faults) {
  const TempDir directory;
  const auto path = directory / "tiny.h5";
  for (const Fault& fault : faults) {
    INFO(fault.expected);
    write_tiny_capture(path);
    edit_hdf5(path, fault.make);
    CHECK_THROWS_AS(CaptureReader(path), FormatError);
    CHECK_THROWS_WITH(CaptureReader(path), contains(fault.expected) && contains("tiny.h5"));
  }
}

template <typename T>
Fault attribute(const char* name, T value, const char* expected) {
  return {expected, [=](hid_t file) { set_attribute<T>(file, layer, name, value); }};
}

Fault dataset(const char* name, hid_t type, const std::vector<hsize_t>& shape,
              const char* expected) {
  return {expected, [=](hid_t file) {
            const std::vector<double> zeros(200, 0.0);  // enough bytes for every shape used here
            set_dataset(file, name, type, shape, zeros.data());
          }};
}

}  // namespace

TEST_CASE("an untouched tiny capture is accepted", "[capture][faults]") {
  const TempDir directory;
  write_tiny_capture(directory / "tiny.h5");
  CHECK_NOTHROW(CaptureReader(directory / "tiny.h5"));
}

TEST_CASE("a tensor under a misspelt name is refused", "[capture][faults]") {
  check_faults({{"/layers/001: 'lsf' is no tensor of a layer", [](hid_t file) {
                   H5Lmove(file, "/layers/001/lse", file, "/layers/001/lsf", H5P_DEFAULT,
                           H5P_DEFAULT);
                 }}});
}

TEST_CASE("files of another format version or stage are refused", "[capture][faults]") {
  check_faults({
      {"format is 'results'", [](hid_t file) { set_text(file, "/", "format", "results"); }},
      {"attribute 'format' is missing", [](hid_t file) { delete_attribute(file, "/", "format"); }},
      {"format_version is 2",
       [](hid_t file) { set_attribute<std::uint32_t>(file, "/", "format_version", 2); }},
      {"stage is 'projection'", [](hid_t file) { set_text(file, "/", "stage", "projection"); }},
  });
}

TEST_CASE("a missing attribute is named with its layer", "[capture][faults]") {
  std::vector<Fault> faults;
  for (const char* name : {"layer_index",
                           "n_q_heads",
                           "n_kv_heads",
                           "k_head_dim",
                           "v_head_dim",
                           "softmax_scale",
                           "causal",
                           "q_offset",
                           "sliding_window",
                           "attention_chunk",
                           "logit_softcap",
                           "softcap_applied",
                           "has_sinks",
                           "alibi",
                           "alibi_scaled",
                           "position_kind",
                           "qk_norm",
                           "kv_shared_from",
                           "v_equals_k_prefix",
                           "out_kind"}) {
    faults.push_back({name, [=](hid_t file) { delete_attribute(file, layer, name); }});
  }
  check_faults(faults);
}

TEST_CASE("an attribute of the wrong type is named with both types", "[capture][faults]") {
  check_faults({
      attribute<float>("softmax_scale", 0.5F,
                       "'softmax_scale' has type float32 instead of float64"),
      attribute<std::int64_t>("softmax_scale", 1, "has type int64 instead of float64"),
      attribute<double>("q_offset", 2.0, "'q_offset' has type float64 instead of int64"),
      attribute<std::int64_t>("causal", 300, "does not fit into uint8"),
      {"'position_kind' has type int64 instead of text",
       [](hid_t file) { set_attribute<std::int64_t>(file, layer, "position_kind", 1); }},
      {"'n_q_heads' has type text", [](hid_t file) { set_text(file, layer, "n_q_heads", "4"); }},
  });
}

TEST_CASE("P05 a scale that is not positive is refused", "[capture][faults]") {
  check_faults({
      attribute<double>("softmax_scale", 0.0, "softmax_scale 0 is not a number > 0"),
      attribute<double>("softmax_scale", -0.125, "softmax_scale -0.125"),
      attribute<double>("softmax_scale", std::numeric_limits<double>::quiet_NaN(),
                        "softmax_scale nan"),
      attribute<double>("softmax_scale", std::numeric_limits<double>::infinity(),
                        "softmax_scale inf"),
  });
}

TEST_CASE("attributes with impossible values are refused", "[capture][faults]") {
  check_faults({
      attribute<std::uint8_t>("causal", 0, "causal is 0"),
      attribute<std::uint8_t>("has_sinks", 2, "'has_sinks' is 2; it must be 0 or 1"),
      attribute<std::int64_t>("sliding_window", -1, "'sliding_window' is -1"),
      attribute<std::int64_t>("attention_chunk", -4, "'attention_chunk' is -4"),
      attribute<std::int64_t>("q_offset", -2, "'q_offset' is -2"),
      attribute<std::int64_t>("layer_index", 2, "layer_index is 2, the name says 1"),
      attribute<double>("logit_softcap", -1.0, "logit_softcap -1"),
      attribute<std::uint8_t>("softcap_applied", 1, "softcap_applied is 1 and logit_softcap is 0"),
      attribute<std::int64_t>("kv_shared_from", 1, "kv_shared_from 1 is not a layer before 1"),
      {"position_kind' is 'rotary'",
       [](hid_t file) { set_text(file, layer, "position_kind", "rotary"); }},
      {"out_kind' is 'guess'", [](hid_t file) { set_text(file, layer, "out_kind", "guess"); }},
      {"num_hidden_layers is 1",
       [](hid_t file) { set_attribute<std::int64_t>(file, "/", "num_hidden_layers", 1); }},
      {"storage_dtype of the file says 'bfloat16'",
       [](hid_t file) { set_text(file, "/", "storage_dtype", "bfloat16"); }},
      {"token_ids_sha256 says abc",
       [](hid_t file) { set_text(file, "/", "token_ids_sha256", "abc"); }},
  });
}

TEST_CASE("P10 query heads that are not a multiple of KV heads are refused", "[capture][faults]") {
  check_faults(
      {attribute<std::int64_t>("n_kv_heads", 3, "n_q_heads 4 is not a multiple of n_kv_heads 3")});
}

TEST_CASE("attributes that disagree with the shapes are named with both", "[capture][faults]") {
  check_faults({
      attribute<std::int64_t>("n_q_heads", 2, "q has shape [4, 5, 3]"),
      attribute<std::int64_t>("n_kv_heads", 4, "k has shape [2, 7, 3]"),
      attribute<std::int64_t>("k_head_dim", 4, "q has shape [4, 5, 3]"),
      attribute<std::int64_t>("v_head_dim", 3, "v has shape [2, 7, 2]"),
      attribute<std::int64_t>("q_offset", 0, "k has 7 rows, but q_offset 0 + 5 rows of q = 5"),
      attribute<std::uint8_t>("has_sinks", 0, "'has_sinks' is 0 and the dataset 'sinks' exists"),
      attribute<std::uint8_t>("alibi", 1, "'alibi' is 1 and the dataset 'alibi_slopes' is missing"),
      attribute<std::int64_t>("v_equals_k_prefix", 2, "v is stored although"),
      attribute<std::int64_t>("v_equals_k_prefix", 3, "v_equals_k_prefix 3 must be 0 or equal"),
  });
}

TEST_CASE("tensors of another shape or type are refused with the remedy", "[capture][faults]") {
  const hid_t half = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(half, 15, 10, 5, 0, 10);
  H5Tset_size(half, 2);
  H5Tset_ebias(half, 15);
  const hid_t opaque = H5Tcreate(H5T_OPAQUE, 2);
  check_faults({
      {"/layers/001/k is missing",
       [](hid_t file) { H5Ldelete(file, "/layers/001/k", H5P_DEFAULT); }},
      {"/layers is missing", [](hid_t file) { H5Ldelete(file, "/layers", H5P_DEFAULT); }},
      dataset("/layers/001/q", half, {1, 4, 5, 3}, "without a batch axis"),
      dataset("/layers/001/v", half, {14, 2}, "v has 2 axes, shape [14, 2], instead of 3"),
      dataset("/layers/001/v", half, {2, 6, 2}, "v has shape [2, 6, 2]"),
      dataset("/layers/001/out", half, {4, 5, 3}, "out has shape [4, 5, 3]"),
      dataset("/layers/001/lse", H5T_NATIVE_FLOAT, {5, 4}, "lse has shape [5, 4]"),
      dataset("/layers/001/sinks", H5T_NATIVE_FLOAT, {3}, "sinks has shape [3]"),
      dataset("/layers/001/sinks", H5T_NATIVE_DOUBLE, {4},
              "sinks holds float64 instead of float32"),
      dataset("/layers/001/q", H5T_IEEE_F64LE, {4, 5, 3}, "q holds float64"),
      dataset("/layers/001/q", H5T_IEEE_F32BE, {4, 5, 3}, "q holds an unusual type"),
      dataset("/layers/001/q", H5T_STD_U16LE, {4, 5, 3}, "uint16 without the attribute 'encoding'"),
      dataset("/layers/001/q", opaque, {4, 5, 3},
              "opaque 2-byte elements (h5py makes them of an ml_dtypes array"),
      dataset("/layers/0x1", half, {1}, "'0x1' is not a layer number"),
      dataset("/tokens/ids", H5T_NATIVE_INT64, {7}, "ids holds int64 instead of int32"),
      dataset("/tokens/positions", H5T_NATIVE_INT32, {6}, "positions has shape [6]"),
  });
  H5Tclose(half);
  H5Tclose(opaque);
}

TEST_CASE("annotations outside the sequence are refused", "[capture][faults]") {
  const auto with = [](const char* name, std::vector<std::int64_t> values, const char* expected) {
    return Fault{expected, [=](hid_t file) {
                   set_dataset(file, name, H5T_NATIVE_INT64, {values.size()}, values.data());
                 }};
  };
  check_faults({
      with("/annotations/end", {3, 8}, "annotation 1 covers [5, 8)"),
      with("/annotations/start", {3, 5}, "annotation 0 covers [3, 3)"),
      with("/annotations/start", {-1, 5}, "annotation 0 covers [-1, 3)"),
      with("/annotations/end", {3}, "end has shape [1] instead of [2]"),
      {"annotation 0 has kind 5",
       [](hid_t file) {
         const std::vector<std::uint8_t> kinds{5, 2};
         set_dataset(file, "/annotations/kind", H5T_NATIVE_UINT8, {2}, kinds.data());
       }},
  });
}

TEST_CASE("two groups for one layer are refused", "[capture][faults]") {
  check_faults({{"another group for layer 1", [](hid_t file) {
                   H5Lcreate_hard(file, layer, file, "/layers/01", H5P_DEFAULT, H5P_DEFAULT);
                 }}});
}

TEST_CASE("a layer behind a soft link is refused", "[capture][faults]") {
  check_faults({{"soft or external link", [](hid_t file) {
                   H5Lcreate_soft(layer, file, "/layers/002", H5P_DEFAULT, H5P_DEFAULT);
                 }}});
}

TEST_CASE("missing and truncated captures are refused", "[capture][faults]") {
  const TempDir directory;
  CHECK_THROWS_AS(CaptureReader(directory / "none.h5"), FormatError);
  write_tiny_capture(directory / "tiny.h5");
  std::filesystem::resize_file(directory / "tiny.h5",
                               std::filesystem::file_size(directory / "tiny.h5") - 100);
  CHECK_THROWS_AS(CaptureReader(directory / "tiny.h5"), FormatError);
}

TEST_CASE("a damaged chunk is found by its checksum", "[capture][faults]") {
  const TempDir directory;
  const auto path = directory / "tiny.h5";
  write_tiny_capture(path);
  // Row 1 of q of head 0 as stored: three float16 numbers that occur nowhere else in this order.
  const Matrix q = tiny_rows(tiny_layer(), Tensor::q, 0);
  std::vector<std::uint16_t> bits(15);
  const std::vector<float> floats(q.data(), q.data() + 15);
  narrow_float16(floats, bits);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto place = content.find(
      std::string(reinterpret_cast<const char*>(bits.data()), bits.size() * sizeof(bits[0])));
  REQUIRE(place != std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(place) + 4);
  file.put('\x55');
  file.close();
  const CaptureReader reader(path);  // the structure is whole
  CHECK_NOTHROW(reader.read_head_checked(1, Tensor::q, 1));
  CHECK_THROWS_AS(reader.read_head_checked(1, Tensor::q, 0), FormatError);
}

TEST_CASE("attributes of variable-length text and other integer widths are accepted",
          "[capture][faults]") {
  const TempDir directory;
  const auto path = directory / "tiny.h5";
  write_tiny_capture(path);
  edit_hdf5(path, [](hid_t file) {
    set_variable_text(file, "/", "model_id", "other");
    set_attribute<std::int32_t>(file, layer, "q_offset", 2);
    set_attribute<std::int64_t>(file, layer, "causal", 1);
  });
  CHECK(CaptureReader(path).info().model_id == "other");
}

}  // namespace quoka
