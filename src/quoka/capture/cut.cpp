#include "quoka/capture/cut.hpp"

#include <algorithm>
#include <cstdint>

#include "quoka/capture/writer.hpp"
#include "quoka/core/build_info.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/half.hpp"
#include "quoka/core/sha256.hpp"

namespace quoka {
namespace {

constexpr Index block_rows = 1024;  // the chunk of the files that are written here
constexpr Tensor all_tensors[] = {Tensor::q, Tensor::k, Tensor::v, Tensor::out};

bool is_stored(const CaptureLayer& layer, Tensor tensor) {
  return tensor == Tensor::v     ? layer.v_equals_k_prefix == 0
         : tensor == Tensor::out ? layer.has_out
                                 : true;
}

template <typename Block>
void for_each_block(Index n_rows, const Block& block) {
  for (Index begin = 0; begin < n_rows; begin += block_rows) {
    block(IndexRange{begin, std::min(n_rows, begin + block_rows)});
  }
}

// One layer before and after the cut, and where its heads and rows come from.
struct LayerCut {
  CaptureLayer from;
  CaptureLayer to;
  std::vector<Index> kv_heads;
  Index first_row = 0;  // of q, out and lse

  [[nodiscard]] Index source_head(Tensor tensor, Index head) const {
    const Index group_size = from.shape.group_size();
    const bool per_query_head = tensor == Tensor::q || tensor == Tensor::out;
    return per_query_head ? kv_heads[static_cast<std::size_t>(head / group_size)] * group_size +
                                head % group_size
                          : kv_heads[static_cast<std::size_t>(head)];
  }
};

std::vector<float> per_query_head(const LayerCut& cut, const std::vector<float>& values) {
  std::vector<float> kept;
  for (Index head = 0; !values.empty() && head < cut.to.shape.n_q_heads; ++head) {
    kept.push_back(values[static_cast<std::size_t>(cut.source_head(Tensor::q, head))]);
  }
  return kept;
}

bool is_exact(StorageType from, StorageType to) {
  return to == StorageType::float32 || name_of(from) == name_of(to);
}

LayerCut make_cut(const CaptureReader& reader, const CaptureLayer& layer, const CutOptions& options,
                  IndexRange tokens) {
  LayerCut cut{layer, layer, options.kv_heads, tokens.begin - layer.rules.q_offset};
  for (Index head = 0; options.kv_heads.empty() && head < layer.shape.n_kv_heads; ++head) {
    cut.kv_heads.push_back(head);
  }
  for (const Index head : cut.kv_heads) {
    require<ConfigError>(head >= 0 && head < layer.shape.n_kv_heads,
                         "{}: layer {} has {} KV heads, none is number {}", reader.path().string(),
                         layer.layer_idx, layer.shape.n_kv_heads, head);
  }
  require<ConfigError>(layer.rules.q_offset <= tokens.begin && tokens.begin < tokens.end &&
                           tokens.end <= layer.shape.n_keys,
                       "{}: layer {} has queries at the positions [{}, {}), not [{}, {})",
                       reader.path().string(), layer.layer_idx, layer.rules.q_offset,
                       layer.shape.n_keys, tokens.begin, tokens.end);
  const auto n_kv_heads = std::ssize(cut.kv_heads);
  cut.to.shape.n_q_heads = n_kv_heads * layer.shape.group_size();
  cut.to.shape.n_kv_heads = n_kv_heads;
  cut.to.shape.n_tokens = tokens.size();
  cut.to.shape.n_keys = tokens.end;
  cut.to.rules.q_offset = tokens.begin;
  cut.to.rules.sinks = per_query_head(cut, layer.rules.sinks);
  cut.to.rules.alibi_slopes = per_query_head(cut, layer.rules.alibi_slopes);
  cut.to.out_storage = layer.out_storage.value_or(layer.storage);
  cut.to.storage = options.storage.value_or(layer.storage);
  if (!is_exact(layer.storage, cut.to.storage)) {
    cut.to.out_kind = "model_native";
  }
  return cut;
}

void copy_layer(const CaptureReader& reader, const LayerCut& cut, CaptureWriter& writer) {
  writer.add_layer(cut.to);
  for (const Tensor tensor : all_tensors) {
    const bool has_query_rows = tensor == Tensor::q || tensor == Tensor::out;
    const Index shift = has_query_rows ? cut.first_row : 0;
    const Index n_copied = is_stored(cut.from, tensor) ? n_heads(cut.to.shape, tensor) : 0;
    for (Index head = 0; head < n_copied; ++head) {
      for_each_block(n_rows(cut.to.shape, tensor), [&](IndexRange rows) {
        writer.write_rows(
            tensor, head, rows,
            reader.read_rows(cut.from.layer_idx, tensor, cut.source_head(tensor, head),
                             {rows.begin + shift, rows.end + shift}));
      });
    }
  }
  for (Index head = 0; cut.from.has_lse && head < cut.to.shape.n_q_heads; ++head) {
    for_each_block(cut.to.shape.n_tokens, [&](IndexRange rows) {
      writer.write_lse(head, rows,
                       reader.read_lse(cut.from.layer_idx, cut.source_head(Tensor::q, head),
                                       {rows.begin + cut.first_row, rows.end + cut.first_row}));
    });
  }
}

CaptureTokens cut_tokens(CaptureTokens tokens, Index n_keys) {
  const auto n = static_cast<std::size_t>(n_keys);
  tokens.ids.resize(n);
  tokens.positions.resize(n);
  if (!tokens.offsets.empty()) {
    tokens.offsets.resize(2 * n);
  }
  return tokens;
}

std::vector<CaptureLayer> chosen_layers(const CaptureReader& reader, const CutOptions& options) {
  std::vector<CaptureLayer> layers(reader.layers().begin(), reader.layers().end());
  if (!options.layers.empty()) {
    std::vector<Index> wanted = options.layers;
    std::ranges::sort(wanted);
    wanted.erase(std::ranges::unique(wanted).begin(), wanted.end());
    layers.clear();
    for (const Index layer_idx : wanted) {
      layers.push_back(reader.layer(layer_idx));
    }
  }
  return layers;
}

std::string stored_bytes(const Matrix& values, StorageType storage) {
  const std::span<const float> floats(values.data(), static_cast<std::size_t>(values.size()));
  if (storage == StorageType::float32) {
    return {reinterpret_cast<const char*>(floats.data()), floats.size_bytes()};
  }
  std::vector<std::uint16_t> bits(floats.size());
  if (storage == StorageType::float16) {
    narrow_float16(floats, bits);
  } else {
    narrow_bfloat16(floats, bits);
  }
  return {reinterpret_cast<const char*>(bits.data()), 2 * bits.size()};
}

}  // namespace

void cut_capture(const CaptureReader& reader, const std::filesystem::path& path,
                 const CutOptions& options) {
  require<ConfigError>(!std::filesystem::exists(path),
                       "{} exists already (captures are never changed); choose another name",
                       path.string());
  const Index n_keys = std::ssize(reader.tokens().ids);
  std::vector<LayerCut> cuts;
  for (const CaptureLayer& layer : chosen_layers(reader, options)) {
    IndexRange tokens = options.tokens.value_or(IndexRange{-1, n_keys});
    if (tokens.begin < 0) {
      tokens.begin = layer.rules.q_offset;
    }
    cuts.push_back(make_cut(reader, layer, options, tokens));
  }
  const Index n_kept = options.tokens ? options.tokens->end : n_keys;
  CaptureInfo info = reader.info();
  info.capture_id.clear();
  info.creator = fmt::format("quoka-capture {} cut, from: {}", build_info().version, info.creator);
  if (n_kept < n_keys) {
    info.prompt_text.clear();
  }
  CaptureWriter writer(path, info, cut_tokens(reader.tokens(), n_kept));
  for (const LayerCut& cut : cuts) {
    copy_layer(reader, cut, writer);
  }
  std::vector<Annotation> annotations;
  std::ranges::copy_if(reader.annotations(), std::back_inserter(annotations),
                       [&](const Annotation& a) { return a.tokens.end <= n_kept; });
  writer.write_annotations(annotations);
  writer.commit();
}

std::vector<TensorChecksum> tensor_checksums(const CaptureReader& reader) {
  std::vector<TensorChecksum> checksums;
  for (const CaptureLayer& layer : reader.layers()) {
    for (const Tensor tensor : all_tensors) {
      if (!is_stored(layer, tensor)) {
        continue;
      }
      const StorageType storage =
          tensor == Tensor::out ? layer.out_storage.value_or(layer.storage) : layer.storage;
      Sha256 hash;
      for (Index head = 0; head < n_heads(layer.shape, tensor); ++head) {
        for_each_block(n_rows(layer.shape, tensor), [&](IndexRange rows) {
          hash.update(stored_bytes(reader.read_rows(layer.layer_idx, tensor, head, rows), storage));
        });
      }
      checksums.push_back(
          {fmt::format("layers/{:03}/{}", layer.layer_idx, name_of(tensor)), hash.hex()});
    }
    if (layer.has_lse) {
      Sha256 hash;
      for (Index head = 0; head < layer.shape.n_q_heads; ++head) {
        hash.update(stored_bytes(
            reader.read_lse(layer.layer_idx, head, {0, layer.shape.n_tokens}).transpose(),
            StorageType::float32));
      }
      checksums.push_back({fmt::format("layers/{:03}/lse", layer.layer_idx), hash.hex()});
    }
  }
  return checksums;
}

}  // namespace quoka
