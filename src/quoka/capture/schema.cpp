#include "quoka/capture/schema.hpp"

namespace quoka {

const std::array<CaptureTextAttribute, 15>& capture_text_attributes() {
  static const std::array<CaptureTextAttribute, 15> rows = {{
      {"created_utc", &CaptureInfo::created_utc},
      {"creator", &CaptureInfo::creator},
      {"model_id", &CaptureInfo::model_id},
      {"model_revision", &CaptureInfo::model_revision},
      {"model_type", &CaptureInfo::model_type},
      {"tokenizer_revision", &CaptureInfo::tokenizer_revision},
      {"compute_dtype", &CaptureInfo::compute_dtype},
      {"storage_dtype", &CaptureInfo::storage_dtype},
      {"attn_implementation", &CaptureInfo::attn_implementation},
      {"transformers_version", &CaptureInfo::transformers_version},
      {"torch_version", &CaptureInfo::torch_version},
      {"device", &CaptureInfo::device},
      {"prompt_sha256", &CaptureInfo::prompt_sha256},
      {"token_ids_sha256", &CaptureInfo::token_ids_sha256},
      {"capture_id", &CaptureInfo::capture_id},
  }};
  return rows;
}

std::string_view name_of(Tensor tensor) {
  switch (tensor) {
    case Tensor::q:
      return "q";
    case Tensor::k:
      return "k";
    case Tensor::v:
      return "v";
    case Tensor::out:
      return "out";
  }
  return "";
}

std::string_view name_of(StorageType storage) {
  switch (storage) {
    case StorageType::float16:
      return "float16";
    case StorageType::bfloat16:
    case StorageType::tagged_bfloat16:
      return "bfloat16";
    case StorageType::float32:
      return "float32";
  }
  return "";
}

Index n_heads(const AttentionShape& shape, Tensor tensor) {
  return tensor == Tensor::q || tensor == Tensor::out ? shape.n_q_heads : shape.n_kv_heads;
}

Index n_rows(const AttentionShape& shape, Tensor tensor) {
  return tensor == Tensor::q || tensor == Tensor::out ? shape.n_tokens : shape.n_keys;
}

Index n_columns(const AttentionShape& shape, Tensor tensor) {
  return tensor == Tensor::q || tensor == Tensor::k ? shape.k_head_dim : shape.v_head_dim;
}

std::string layer_kind(const CaptureLayer& layer) {
  std::string kind;
  const auto add = [&kind](bool holds, std::string_view name) {
    if (holds) {
      kind += (kind.empty() ? "" : "+") + std::string(name);
    }
  };
  add(layer.rules.sliding_window > 0, "window");
  add(layer.rules.attention_chunk > 0, "attention_chunk");
  add(layer.position_kind == "nope", "unrotated");
  return kind.empty() ? "full" : kind;
}

}  // namespace quoka
