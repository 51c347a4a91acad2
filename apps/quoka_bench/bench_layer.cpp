#include "quoka_bench/bench_layer.hpp"

#include "quoka/core/error.hpp"

namespace quoka::apps {

SyntheticOptions synthetic_options(const BenchOptions& options, Index head_dim, Index n_tokens) {
  SyntheticOptions synthetic;
  synthetic.n_q_heads = options.n_q_heads;
  synthetic.n_kv_heads = options.n_kv_heads;
  synthetic.n_tokens = n_tokens;
  synthetic.k_head_dim = head_dim;
  synthetic.v_head_dim = head_dim;
  synthetic.seed = options.seed;
  return synthetic;
}

BenchLayer::BenchLayer(const BenchOptions& options, Index head_dim, Index n_tokens)
    : synthetic_(synthetic_options(options, head_dim, n_tokens)),
      layer_(synthetic_layer(synthetic_, 0)),
      source_(fmt::format("synthetic, seed {}", options.seed)) {
  load_keys();
}

BenchLayer::BenchLayer(const BenchOptions& options)
    : reader_(std::make_unique<CaptureReader>(options.capture)),
      layer_(options.layer_idx < 0 ? reader_->layers().front() : reader_->layer(options.layer_idx)),
      source_(fmt::format("{} layer {}", options.capture, layer_.layer_idx)) {
  load_keys();
}

void BenchLayer::load_keys() {
  const IndexRange all{0, layer_.shape.n_keys};
  for (Index head = 0; head < layer_.shape.n_kv_heads; ++head) {
    k_.push_back(rows(Tensor::k, head, all));
    v_.push_back(rows(Tensor::v, head, all));
  }
}

Matrix BenchLayer::rows(Tensor tensor, Index head, IndexRange rows) const {
  return reader_ ? reader_->read_rows(layer_.layer_idx, tensor, head, rows)
                 : synthetic_rows(synthetic_, layer_.layer_idx, tensor, head, rows);
}

BenchChunk BenchLayer::chunk(Index history, Index chunk_size) const {
  const Index begin = history - layer_.rules.q_offset;
  const Index end = begin + chunk_size;
  require<ConfigError>(begin >= 0 && end <= layer_.shape.n_tokens,
                       "a chunk of {} rows behind a history of {} keys is not in {} (its queries "
                       "are at positions {} to {}); use another --history",
                       chunk_size, history, source_, layer_.rules.q_offset,
                       layer_.shape.n_keys - 1);
  BenchChunk chunk{.q = {}, .rules = layer_.rules, .groups = {}};
  chunk.rules.q_offset = history;
  for (Index head = 0; head < layer_.shape.n_q_heads; ++head) {
    chunk.q.push_back(rows(Tensor::q, head, {begin, end}));
  }
  const IndexRange keys{0, history + chunk_size};
  for (Index kv_head = 0; kv_head < layer_.shape.n_kv_heads; ++kv_head) {
    const auto h = static_cast<std::size_t>(kv_head);
    GroupView group{.q = {},
                    .k = row_view(view(k_[h]), keys),
                    .v = row_view(view(v_[h]), keys),
                    .kv_head = kv_head};
    const Index size = layer_.shape.group_size();
    for (Index head = kv_head * size; head < (kv_head + 1) * size; ++head) {
      group.q.push_back(view(chunk.q[static_cast<std::size_t>(head)]));
    }
    chunk.groups.push_back(std::move(group));
  }
  return chunk;
}

LayerInput BenchLayer::replay_input() const {
  const auto q = std::make_shared<std::vector<Matrix>>();
  for (Index head = 0; head < layer_.shape.n_q_heads; ++head) {
    q->push_back(rows(Tensor::q, head, {0, layer_.shape.n_tokens}));
  }
  LayerInput input;
  input.shape = layer_.shape;
  input.rules = layer_.rules;
  input.layer_idx = layer_.layer_idx;
  input.load_group = [this, q](Index kv_head) {
    const auto h = static_cast<std::size_t>(kv_head);
    const auto first = q->begin() + kv_head * layer_.shape.group_size();
    return HeadGroup{{first, first + layer_.shape.group_size()}, k_[h], v_[h]};
  };
  return input;
}

}  // namespace quoka::apps
