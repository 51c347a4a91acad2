// Writes captures with one known fault, from the real tensors of a capture:
//   make_fault FROM FILE FAULT
// The output is computed in float32 from what the model would have used; the file says or holds
// something else. FAULT is one of right, no_reference, scale, softcap, sinks, window, mapping,
// norm, rotation, swap; or terabytes, a small file with a tensor that claims to be huge.

#include <hdf5.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "quoka/attention/dense.hpp"
#include "quoka/capture/detail/rotary.hpp"
#include "quoka/capture/reader.hpp"
#include "quoka/capture/writer.hpp"

namespace {

using namespace quoka;

constexpr Index n_tokens = 320;
constexpr Index source_layer = 18;

struct Tensors {
  std::vector<Matrix> q;
  std::vector<Matrix> k;
  std::vector<Matrix> v;
};

Tensors read_tensors(const CaptureReader& reader, const CaptureLayer& layer) {
  Tensors tensors;
  const IndexRange rows{0, n_tokens};
  for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
    tensors.q.push_back(reader.read_rows(source_layer, Tensor::q, head, rows));
  }
  for (Index head = 0; head < layer.shape.n_kv_heads; ++head) {
    tensors.k.push_back(reader.read_rows(source_layer, Tensor::k, head, rows));
    tensors.v.push_back(reader.read_rows(source_layer, Tensor::v, head, rows));
  }
  return tensors;
}

DenseChunk attention(const Tensors& tensors, const CaptureLayer& layer, Index kv_head) {
  GroupView group{{},
                  view(tensors.k[static_cast<std::size_t>(kv_head)]),
                  view(tensors.v[static_cast<std::size_t>(kv_head)]),
                  kv_head};
  for (Index i = 0; i < layer.shape.group_size(); ++i) {
    group.q.push_back(
        view(tensors.q[static_cast<std::size_t>(kv_head * layer.shape.group_size() + i)]));
  }
  return dense_chunk(group, layer.rules, {0, n_tokens});
}

std::vector<float> sink_logits(Index n_q_heads) {
  std::vector<float> sinks;
  for (Index head = 0; head < n_q_heads; ++head) {
    sinks.push_back(4 + 0.5F * static_cast<float>(head));
  }
  return sinks;
}

// What the file says instead of what was used.
void spoil_attributes(const std::string& fault, const AttentionRules& used, CaptureLayer& layer) {
  layer.rules = used;
  if (fault == "scale") {
    layer.rules.scale *= 2;
  } else if (fault == "softcap") {
    layer.rules.softcap = 0;
  } else if (fault == "sinks") {
    layer.rules.sinks.clear();
  } else if (fault == "window") {
    layer.rules.sliding_window += 1;
  }
}

void spoil_tensors(const std::string& fault, const CaptureInfo& info, const CaptureLayer& layer,
                   Tensors& tensors) {
  if (fault == "swap") {
    std::swap(tensors.k, tensors.v);
  }
  std::vector<std::int32_t> positions(static_cast<std::size_t>(n_tokens));
  std::iota(positions.begin(), positions.end(), 0);
  capture_detail::Rotary back = capture_detail::rotary_candidates(layer, info.config_json).front();
  for (double& frequency : back.frequencies) {
    frequency = -frequency;
  }
  for (Matrix& q : tensors.q) {
    if (fault == "rotation") {
      rotate(back, positions, q);
    }
    for (Index row = 0; row < n_tokens && fault == "norm"; ++row) {
      q.row(row) *= 0.5F + static_cast<float>(row * 37 % 64) / 32;
    }
  }
}

void write_capture(const CaptureReader& reader, const std::string& path, const std::string& fault) {
  CaptureLayer layer = reader.layer(source_layer);
  layer.shape.n_tokens = layer.shape.n_keys = n_tokens;
  layer.storage =
      StorageType::float32;  // the tensors hold float16 numbers, and rotated ones fit too
  layer.out_storage.reset();
  layer.out_kind = "fp32_from_stored";
  layer.has_out = layer.has_lse = fault != "no_reference";
  AttentionRules used = layer.rules;
  used.softcap = fault == "softcap" ? 5 : 0;
  used.sliding_window = fault == "window" ? 50 : 0;
  if (fault == "sinks") {
    used.sinks = sink_logits(layer.shape.n_q_heads);
  }
  layer.rules = used;
  Tensors tensors = read_tensors(reader, layer);
  std::vector<DenseChunk> groups;
  for (Index kv_head = 0; kv_head < layer.shape.n_kv_heads; ++kv_head) {
    groups.push_back(attention(tensors, layer, kv_head));
  }
  spoil_attributes(fault, used, layer);
  spoil_tensors(fault, reader.info(), layer, tensors);

  CaptureTokens tokens = reader.tokens();
  tokens.ids.resize(static_cast<std::size_t>(n_tokens));
  tokens.positions.resize(static_cast<std::size_t>(n_tokens));
  tokens.offsets.clear();
  CaptureWriter writer(path, reader.info(), tokens);
  writer.add_layer(layer);
  const IndexRange rows{0, n_tokens};
  for (Index head = 0; head < layer.shape.n_kv_heads; ++head) {
    writer.write_rows(Tensor::k, head, rows, tensors.k[static_cast<std::size_t>(head)]);
    writer.write_rows(Tensor::v, head, rows, tensors.v[static_cast<std::size_t>(head)]);
  }
  const Index group_size = layer.shape.group_size();
  for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
    // Interleaved: the stored head h reads KV head h mod n_kv_heads.
    const Index from = fault == "mapping" ? head % layer.shape.n_kv_heads * group_size +
                                                head / layer.shape.n_kv_heads
                                          : head;
    writer.write_rows(Tensor::q, head, rows, tensors.q[static_cast<std::size_t>(from)]);
    if (layer.has_out) {
      const DenseChunk& group = groups[static_cast<std::size_t>(from / group_size)];
      const Index first = from % group_size * n_tokens;
      writer.write_rows(Tensor::out, head, rows, group.out.middleRows(first, n_tokens));
      writer.write_lse(head, rows, group.lse.segment(first, n_tokens));
    }
  }
  writer.commit();
}

// The tensor k becomes one of 2^57 bytes of which nothing is stored.
void claim_terabytes(const std::string& path) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const std::string name = "/layers/018/k";
  H5Ldelete(file, name.c_str(), H5P_DEFAULT);
  const hsize_t shape[] = {3, hsize_t{1} << 28, hsize_t{1} << 28};
  const hsize_t chunk[] = {1, 64, 64};
  const hid_t space = H5Screate_simple(3, shape, nullptr);
  const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(properties, 3, chunk);
  H5Dclose(
      H5Dcreate2(file, name.c_str(), H5T_IEEE_F32LE, space, H5P_DEFAULT, properties, H5P_DEFAULT));
  H5Pclose(properties);
  H5Sclose(space);
  H5Fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 4) {
      return 2;
    }
    const std::string fault = argv[3];
    write_capture(CaptureReader(argv[1]), argv[2], fault);
    if (fault == "terabytes") {
      claim_terabytes(argv[2]);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_fault: %s\n", error.what());
    return 1;
  }
}
