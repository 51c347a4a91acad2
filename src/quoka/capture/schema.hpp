#pragma once

/// Captures: the q, k and v that one model computed for one token sequence, with everything that
/// shapes the softmax. Comes in: HDF5 files in the format "qkv-capture" version 1. Goes out:
/// float32 rows of one head at a time. This room knows no selector and no metric.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quoka/core/attention_rules.hpp"
#include "quoka/core/attention_shape.hpp"
#include "quoka/core/matrix.hpp"

namespace quoka {

constexpr std::string_view capture_format = "qkv-capture";
constexpr std::uint32_t capture_format_version = 1;
constexpr std::string_view capture_stage = "post_norm_post_rope_pre_repeat_kv";

/// The root attributes of a capture and its two texts; what they mean is in the format's page.
struct CaptureInfo {
  std::string created_utc;
  std::string creator;
  std::string model_id;
  std::string model_revision;
  std::string model_type;
  std::string tokenizer_revision;
  std::string compute_dtype;
  std::string storage_dtype;  ///< of q, k and v: "float16", "bfloat16" or "float32"
  std::string attn_implementation;
  std::string transformers_version;
  std::string torch_version;
  std::string device;
  std::string prompt_sha256;
  std::string token_ids_sha256;        ///< of the ids as little-endian int32
  std::string capture_id;              ///< a label, not the identity
  std::int64_t num_hidden_layers = 0;  ///< of the model; the capture may hold fewer
  std::string config_json;             ///< /meta/config_json, "" if absent
  std::string prompt_text;             ///< /meta/prompt_text, "" if absent
};

/// The root attributes that are texts, in the order of the file.
struct CaptureTextAttribute {
  std::string_view name;
  std::string CaptureInfo::*member;
};
const std::array<CaptureTextAttribute, 15>& capture_text_attributes();

/// The token sequence of a capture.
struct CaptureTokens {
  std::vector<std::int32_t> ids;        ///< [n_keys]
  std::vector<std::int32_t> positions;  ///< [n_keys], positions that the model used for RoPE
  std::vector<std::int64_t> offsets;    ///< [n_keys, 2] character span in the prompt; may be empty
};

/// The tensors of a layer: q and out have one matrix per query head, k and v one per KV head.
enum class Tensor { q, k, v, out };
std::string_view name_of(Tensor tensor);

/// How numbers of a tensor are stored. tagged_bfloat16 is uint16 with the attribute
/// encoding = "bfloat16", for producers that cannot describe the type.
enum class StorageType { float16, bfloat16, tagged_bfloat16, float32 };

/// "float16", "bfloat16" (for both spellings) or "float32".
std::string_view name_of(StorageType storage);

/// One layer of a capture. q_offset, scale, window and so on are in rules.
struct CaptureLayer {
  Index layer_idx = 0;
  AttentionShape shape;
  AttentionRules rules;  ///< softcap is 0 unless this capture's forward applied it
  StorageType storage = StorageType::float16;  ///< of q; k and v have the same number format
  std::optional<StorageType> out_storage;      ///< of out; empty: as q
  double logit_softcap = 0;                    ///< as the model's configuration has it
  bool softcap_applied = false;                ///< whether this capture's forward used it
  std::string position_kind = "rope";          ///< "rope", "rope_partial", "nope", "alibi" or "mla"
  std::string rope_json;                       ///< documentation; "" if absent
  std::string qk_norm = "none";                ///< documentation
  std::string out_kind = "fp32_from_stored";   ///< or "model_native"
  Index kv_shared_from = -1;                   ///< layer whose k and v this one reuses, or -1
  Index v_equals_k_prefix = 0;  ///< > 0: v is not stored, it is that many first columns of k
  bool has_out = false;
  bool has_lse = false;
};

/// Matrices that a tensor has: query heads or KV heads.
Index n_heads(const AttentionShape& shape, Tensor tensor);
/// Rows of each: n_tokens or n_keys.
Index n_rows(const AttentionShape& shape, Tensor tensor);
/// Columns of each: k_head_dim or v_head_dim.
Index n_columns(const AttentionShape& shape, Tensor tensor);

/// "full", or those of "window", "attention_chunk" and "unrotated" that hold, joined by "+".
std::string layer_kind(const CaptureLayer& layer);

/// What a range of tokens is; the numbers are those of the file.
enum class AnnotationKind : std::uint8_t { haystack, needle, question, instruction, answer };

/// One marked range of tokens.
struct Annotation {
  IndexRange tokens;  ///< absolute positions
  AnnotationKind kind = AnnotationKind::haystack;
  std::int32_t group = 0;  ///< a question and its needles have the same number
  std::string label;       ///< at most 64 bytes of UTF-8
  bool operator==(const Annotation&) const = default;
};

}  // namespace quoka
