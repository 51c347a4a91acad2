#include "quoka/capture/verify.hpp"

#include <cmath>
#include <numeric>

#include "quoka/capture/detail/rotary.hpp"
#include "quoka/capture/writer.hpp"
#include "quoka/core/half.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "support/tiny_layer.hpp"

namespace quoka {
namespace {

using namespace test;

constexpr Index n_tokens = 96;
constexpr Index head_dim = 16;

// What a capture says, and how its stored output came about: equal unless a test changes one.
struct Case {
  TinyLayer layer;       // q, k, v and rules as the file will hold them
  TinyLayer model;       // what the model computed with
  CaptureLayer written;  // the other attributes
  std::vector<Index> kv_of_head;
  std::string config_json = R"({"rope_theta": 10000.0})";
  bool with_out = true;
  bool with_lse = true;
};

void round_to(StorageType storage, Matrix& values) {
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(values.size()));
  const std::span<float> floats(values.data(), bits.size());
  if (storage == StorageType::float16) {
    narrow_float16(floats, bits);
    widen_float16(bits, floats);
  } else if (storage == StorageType::bfloat16) {
    narrow_bfloat16(floats, bits);
    widen_bfloat16(bits, floats);
  }
}

Case make_case(StorageType storage = StorageType::float16) {
  Case c;
  c.layer = tiny_layer({.n_q_heads = 4,
                        .n_kv_heads = 2,
                        .n_tokens = n_tokens,
                        .k_head_dim = head_dim,
                        .v_head_dim = head_dim,
                        .q_offset = 3},
                       7);
  for (auto* tensor : {&c.layer.q, &c.layer.k, &c.layer.v}) {
    for (Matrix& head : *tensor) {
      round_to(storage, head);
    }
  }
  c.model = c.layer;
  c.written.storage = storage;
  c.kv_of_head = {0, 0, 1, 1};
  return c;
}

// Rows of one head in float64, written out: logit, cap, window, sink.
void model_head(const Case& c, std::size_t head, Matrix& out, Vector& lse) {
  const AttentionRules& rules = c.model.rules;
  const auto kv = static_cast<std::size_t>(c.kv_of_head[head]);
  const MatrixD q = c.model.q[head].cast<double>();
  const MatrixD k = c.model.k[kv].cast<double>();
  const MatrixD v = c.model.v[kv].cast<double>();
  for (Index row = 0; row < q.rows(); ++row) {
    const Index position = rules.q_offset + row;
    const Index first =
        rules.sliding_window > 0 ? std::max<Index>(0, position - rules.sliding_window + 1) : 0;
    double sum = rules.sinks.empty() ? 0 : std::exp(static_cast<double>(rules.sinks[head]));
    VectorD total = VectorD::Zero(v.cols());
    for (Index j = first; j <= position; ++j) {
      double logit = rules.scale * q.row(row).dot(k.row(j));
      if (rules.softcap > 0) {
        logit = rules.softcap * std::tanh(logit / rules.softcap);
      }
      sum += std::exp(logit);
      total += std::exp(logit) * v.row(j).transpose();
    }
    out.row(row) = (total / sum).cast<float>().transpose();
    lse[row] = static_cast<float>(std::log(sum));
  }
}

CaptureLayer capture_layer(const Case& c) {
  CaptureLayer layer = c.written;
  layer.layer_idx = 2;
  layer.shape = c.layer.shape;
  layer.rules = c.layer.rules;
  layer.has_out = c.with_out;
  layer.has_lse = c.with_lse;
  layer.softcap_applied = c.layer.rules.softcap > 0;
  layer.logit_softcap = c.layer.rules.softcap;
  return layer;
}

VerifyReport verify(const Case& c) {
  const TempDir directory;
  const CaptureLayer layer = capture_layer(c);
  CaptureInfo info;
  info.compute_dtype = "float32";
  info.num_hidden_layers = 3;
  info.config_json = c.config_json;
  CaptureTokens tokens;
  tokens.ids.resize(static_cast<std::size_t>(layer.shape.n_keys));
  std::iota(tokens.ids.begin(), tokens.ids.end(), 0);
  tokens.positions = tokens.ids;
  CaptureWriter writer(directory / "case.h5", info, tokens);
  writer.add_layer(layer);
  const IndexRange keys{0, layer.shape.n_keys};
  const IndexRange rows{0, layer.shape.n_tokens};
  for (Index head = 0; head < layer.shape.n_kv_heads; ++head) {
    writer.write_rows(Tensor::k, head, keys, c.layer.k[static_cast<std::size_t>(head)]);
    writer.write_rows(Tensor::v, head, keys, c.layer.v[static_cast<std::size_t>(head)]);
  }
  for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
    const auto i = static_cast<std::size_t>(head);
    writer.write_rows(Tensor::q, head, rows, c.layer.q[i]);
    Matrix out(rows.size(), layer.shape.v_head_dim);
    Vector lse(rows.size());
    model_head(c, i, out, lse);
    if (c.with_out) {
      writer.write_rows(Tensor::out, head, rows, out);
    }
    if (c.with_lse) {
      writer.write_lse(head, rows, lse);
    }
  }
  writer.commit();
  return verify_capture(CaptureReader(directory / "case.h5"), 2);
}

void check_named(const Case& c, const std::string& cause) {
  for (const bool with_lse : {true, false}) {
    Case variant = c;
    variant.with_lse = with_lse;
    const VerifyReport report = verify(variant);
    CHECK(report.verdict == Verdict::failed);
    CHECK_THAT(report.layers.at(0).cause, contains(cause));
  }
}

std::vector<std::int32_t> positions_from(Index first, Index n) {
  std::vector<std::int32_t> positions(static_cast<std::size_t>(n));
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(first));
  return positions;
}

// Rotates every matrix with the pairs and base frequency of Llama, written out again here.
void rotate_heads(std::vector<Matrix>& heads, Index first_position) {
  for (Matrix& head : heads) {
    for (Index row = 0; row < head.rows(); ++row) {
      for (Index pair = 0; pair < head_dim / 2; ++pair) {
        const double angle =
            static_cast<double>(first_position + row) *
            std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(head_dim));
        const double x = static_cast<double>(head(row, pair));
        const double y = static_cast<double>(head(row, pair + head_dim / 2));
        head(row, pair) = static_cast<float>(x * std::cos(angle) - y * std::sin(angle));
        head(row, pair + head_dim / 2) =
            static_cast<float>(x * std::sin(angle) + y * std::cos(angle));
      }
    }
  }
}

}  // namespace

TEST_CASE("a right capture passes in every number format", "[capture][verify]") {
  const auto storage = GENERATE(StorageType::float16, StorageType::bfloat16, StorageType::float32);
  Case c = make_case(storage);
  c.layer.rules.sliding_window = c.model.rules.sliding_window = 20;
  c.layer.rules.softcap = c.model.rules.softcap = 5;
  c.layer.rules.sinks = c.model.rules.sinks = {1, -1, 0.5F, 0};
  const VerifyReport report = verify(c);
  CHECK(report.verdict == Verdict::passed);
  REQUIRE(report.layers.at(0).heads.size() == 4);
  for (const HeadCheck& head : report.layers[0].heads) {
    // out is rounded once when it is stored; the rest is float32 arithmetic.
    const double roundoff = storage == StorageType::float16    ? 0x1p-11
                            : storage == StorageType::bfloat16 ? 0x1p-8
                                                               : 0x1p-20;
    CHECK(head.out_error <= roundoff);
    CHECK(head.lse_error <= 1e-5);
    CHECK(head.passed);
  }
  CHECK(report.worst_out_error() > 0);
}

TEST_CASE("a capture without out and lse has no reference", "[capture][verify]") {
  Case c = make_case();
  c.with_out = c.with_lse = false;
  const VerifyReport report = verify(c);
  CHECK(report.verdict == Verdict::no_reference);
  CHECK(std::isnan(report.worst_out_error()));
}

TEST_CASE("lse alone is enough to pass and to fail", "[capture][verify]") {
  Case c = make_case();
  c.with_out = false;
  CHECK(verify(c).verdict == Verdict::passed);
  c.model.rules.scale *= 2;
  const VerifyReport report = verify(c);
  CHECK(report.verdict == Verdict::failed);
  CHECK_THAT(report.layers.at(0).cause, contains("2 times as much"));
}

TEST_CASE("P05 a scale that is wrong by 2 is named with the one that fits", "[capture][verify]") {
  Case c = make_case();
  c.layer.rules.scale = c.model.rules.scale / 2;
  check_named(c, "softmax_scale 0.125 is wrong: 0.25 fits (2 times as much)");
  c.layer.rules.scale = c.model.rules.scale * 2;
  check_named(c, "half of it");
  c.layer.rules.scale = c.model.rules.scale * 1.37;
  check_named(c, "softmax_scale");
}

TEST_CASE("P01 a cap that was dropped is named", "[capture][verify]") {
  Case c = make_case();
  c.model.rules.softcap = 3;
  check_named(c, "capped at 3");
  c.model.rules.softcap = 0;
  c.layer.rules.softcap = 3;
  check_named(c, "softcap dropped");
}

TEST_CASE("P02 sinks that were dropped are named", "[capture][verify]") {
  Case c = make_case();
  c.model.rules.sinks = {1, 2, 0.5F, 1.5F};
  check_named(c, "sinks dropped, the file has none");
  c.model.rules.sinks.clear();
  c.layer.rules.sinks = {1, 2, 0.5F, 1.5F};
  check_named(c, "sinks dropped: the output was made without");
}

TEST_CASE("P04 a window that is off by one is named", "[capture][verify]") {
  Case c = make_case();
  c.model.rules.sliding_window = 17;
  c.layer.rules.sliding_window = 16;
  check_named(c, "sliding_window 16 is wrong by one: 17 fits");
  c.layer.rules.sliding_window = 18;
  check_named(c, "sliding_window 18 is wrong by one: 17 fits");
  c.layer.rules.sliding_window = 0;
  c.config_json = R"({"sliding_window": 17})";
  check_named(c, "sliding_window 0 is wrong: 17 fits");
}

TEST_CASE("P10 interleaved heads are named with the order that repairs them", "[capture][verify]") {
  Case c = make_case();
  c.kv_of_head = {0, 1, 0, 1};
  check_named(c, "interleaved");
  check_named(c, "in the order [0, 2, 1, 3]");
}

TEST_CASE("swapped k and v are named", "[capture][verify]") {
  Case c = make_case();
  std::swap(c.layer.k, c.layer.v);
  check_named(c, "k and v are swapped");
}

TEST_CASE("P07 q before normalisation is named", "[capture][verify]") {
  Case c = make_case();
  NumberStream numbers(3);
  for (std::size_t head = 0; head < c.layer.q.size(); ++head) {
    for (Index row = 0; row < n_tokens; ++row) {
      c.layer.q[head].row(row) *= 1.5F + numbers.uniform();
    }
  }
  check_named(c, "before normalisation (");
}

TEST_CASE("P07 q or k before rotation is named", "[capture][verify]") {
  Case c = make_case();
  SECTION("q") {
    rotate_heads(c.model.q, 3);
    check_named(c, "q is of the stage before rotation (rope_theta 10000");
  }
  SECTION("k") {
    rotate_heads(c.model.k, 0);
    check_named(c, "k is of the stage before rotation");
  }
  SECTION("both") {
    rotate_heads(c.model.q, 3);
    rotate_heads(c.model.k, 0);
    check_named(c, "q and k are of the stage before rotation");
  }
  SECTION("and before normalisation") {
    rotate_heads(c.model.q, 3);
    for (Index row = 0; row < n_tokens; ++row) {
      for (Matrix& head : c.layer.q) {
        head.row(row) *= row % 2 == 0 ? 0.5F : 1.75F;
      }
    }
    check_named(c, "before normalisation and before rotation");
  }
}

TEST_CASE("P07 tensors that nothing explains are a likely stage mismatch", "[capture][verify]") {
  Case c = make_case();
  NumberStream numbers(5);
  for (Matrix& head : c.layer.q) {
    head = 4 * numbers.matrix(head.rows(), head.cols());
  }
  check_named(c, "likely stage mismatch");
}

TEST_CASE("a single damaged row fails its head and is found", "[capture][verify]") {
  Case c = make_case(StorageType::float32);
  c.model.q[1].row(40) *= -1.0F;
  const VerifyReport report = verify(c);
  CHECK(report.verdict == Verdict::failed);
  const std::vector<HeadCheck>& heads = report.layers.at(0).heads;
  CHECK(heads[0].passed);
  CHECK_FALSE(heads[1].passed);
  CHECK(heads[1].worst_token == 43);
}

TEST_CASE("a tensor that is not finite fails its layer with its place", "[capture][verify]") {
  Case c = make_case(StorageType::float32);
  c.layer.k[1](5, 2) = std::nanf("");
  const VerifyReport report = verify(c);
  CHECK(report.verdict == Verdict::failed);
  CHECK_THAT(report.layers.at(0).cause, contains("layer 2, k, head 1, token 5"));
}

TEST_CASE("an output of the model itself may differ by the rounding of q and k",
          "[capture][verify]") {
  Case c = make_case(StorageType::float32);
  c.written.storage = StorageType::bfloat16;  // the model saw the numbers before they were rounded
  c.written.out_kind = "model_native";
  CHECK(verify(c).verdict == Verdict::passed);
  c.written.out_kind = "fp32_from_stored";
  CHECK(verify(c).verdict == Verdict::failed);
}

TEST_CASE("the embedded capture passes on every layer", "[capture][verify]") {
  const CaptureReader reader(std::string(QUOKA_DATA_DIR) + "/smollm2-135m_needles_2k.h5");
  const VerifyReport report = verify_capture(reader, 2);
  CHECK(report.verdict == Verdict::passed);
  CHECK(report.layers.size() == 3);
  // float16 keeps 11 bits of q and k; logits of some tens turn that into a few 1e-3.
  CHECK(report.worst_out_error() < 4e-3);
}

TEST_CASE("rotation in pairs of neighbours and of halves are permutations of each other",
          "[capture][verify]") {
  using namespace capture_detail;
  CaptureLayer layer;
  layer.shape.k_head_dim = 8;
  const std::vector<Rotary> rotaries = rotary_candidates(layer, R"({"rope_theta": 100})");
  REQUIRE(rotaries.size() == 2);
  NumberStream numbers(1);
  Matrix halves = numbers.matrix(5, 8);
  Matrix neighbours(5, 8);
  for (Index pair = 0; pair < 4; ++pair) {
    neighbours.col(2 * pair) = halves.col(pair);
    neighbours.col(2 * pair + 1) = halves.col(pair + 4);
  }
  const auto positions = positions_from(2, 5);
  rotate(rotaries[0], positions, halves);
  rotate(rotaries[1], positions, neighbours);
  for (Index pair = 0; pair < 4; ++pair) {
    CHECK(neighbours.col(2 * pair) == halves.col(pair));
    CHECK(neighbours.col(2 * pair + 1) == halves.col(pair + 4));
  }
}

}  // namespace quoka
