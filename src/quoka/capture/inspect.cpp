#include "quoka/capture/inspect.hpp"

#include <array>
#include <filesystem>

#include "quoka/capture/detail/json.hpp"
#include "quoka/capture/verified_state.hpp"
#include "quoka/core/error.hpp"
#include "quoka/core/sha256.hpp"

namespace quoka {
namespace {

using capture_detail::json_number;
using capture_detail::json_quoted;

constexpr std::array<std::string_view, 5> kind_names = {"haystack", "needle", "question",
                                                        "instruction", "answer"};

std::string_view name_of_kind(AnnotationKind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

// The hash costs a pass over the file, so it is only taken if there is a note to compare with.
std::string state_of(const CaptureReader& reader) {
  const std::filesystem::path& path = reader.path();
  return verified_state(path,
                        std::filesystem::exists(verified_path(path)) ? sha256_of_file(path) : "");
}

std::string tensors_text(const CaptureLayer& layer) {
  std::string text(name_of(layer.storage));
  if (layer.has_out) {
    text += fmt::format(", out {} ({})", name_of(layer.out_storage.value_or(layer.storage)),
                        layer.out_kind);
  }
  return text + (layer.has_lse ? ", lse" : "");
}

std::string rules_text(const CaptureLayer& layer) {
  const AttentionRules& rules = layer.rules;
  std::string text = fmt::format("scale {:.6g}", rules.scale);
  if (rules.sliding_window > 0) {
    text += fmt::format(", window {}", rules.sliding_window);
  }
  if (rules.attention_chunk > 0) {
    text += fmt::format(", attention chunk {}", rules.attention_chunk);
  }
  if (layer.logit_softcap > 0) {
    text += fmt::format(", cap {:g}{}", layer.logit_softcap,
                        layer.softcap_applied ? "" : " (not applied)");
  }
  if (!rules.sinks.empty()) {
    text += ", sinks";
  }
  if (rules.alibi != Alibi::none) {
    text += rules.alibi == Alibi::scaled ? ", alibi (scaled)" : ", alibi";
  }
  return text;
}

std::string layer_text(const CaptureLayer& layer) {
  const AttentionShape& shape = layer.shape;
  return fmt::format(
      "  {:03}  {:<8}  {}:{} heads, {} rows from position {}, head size {}{}; {}; {}\n",
      layer.layer_idx, layer_kind(layer), shape.n_q_heads, shape.n_kv_heads, shape.n_tokens,
      layer.rules.q_offset, shape.k_head_dim,
      shape.v_head_dim == shape.k_head_dim ? "" : fmt::format("/{}", shape.v_head_dim),
      rules_text(layer), tensors_text(layer));
}

std::string layer_json(const CaptureLayer& layer) {
  const AttentionShape& shape = layer.shape;
  const AttentionRules& rules = layer.rules;
  return fmt::format(
      "    {{\"layer_index\": {}, \"kind\": \"{}\", \"n_q_heads\": {}, \"n_kv_heads\": {}, "
      "\"n_tokens\": {}, \"n_keys\": {}, \"k_head_dim\": {}, \"v_head_dim\": {}, "
      "\"softmax_scale\": {}, \"q_offset\": {}, \"sliding_window\": {}, \"attention_chunk\": {}, "
      "\"logit_softcap\": {}, \"softcap_applied\": {}, \"has_sinks\": {}, \"alibi\": {}, "
      "\"alibi_scaled\": {}, \"position_kind\": {}, \"qk_norm\": {}, \"kv_shared_from\": {}, "
      "\"v_equals_k_prefix\": {}, \"storage\": \"{}\", \"out\": {}, \"out_kind\": {}, "
      "\"has_lse\": {}}}",
      layer.layer_idx, layer_kind(layer), shape.n_q_heads, shape.n_kv_heads, shape.n_tokens,
      shape.n_keys, shape.k_head_dim, shape.v_head_dim, json_number(rules.scale), rules.q_offset,
      rules.sliding_window, rules.attention_chunk, json_number(layer.logit_softcap),
      layer.softcap_applied, !rules.sinks.empty(), rules.alibi != Alibi::none,
      rules.alibi == Alibi::scaled, json_quoted(layer.position_kind), json_quoted(layer.qk_norm),
      layer.kv_shared_from, layer.v_equals_k_prefix, name_of(layer.storage),
      layer.has_out ? json_quoted(name_of(layer.out_storage.value_or(layer.storage))) : "null",
      json_quoted(layer.out_kind), layer.has_lse);
}

}  // namespace

std::string inspect_text(const CaptureReader& reader) {
  const CaptureInfo& info = reader.info();
  std::string text = fmt::format(
      "{}\n  {} bytes, capture_id {}, {}\n  model {} (revision {}), {} of {} layers\n"
      "  computed in {} with {} on {}, stored as {}\n  made {} by {}\n"
      "  {} tokens, configuration {}, prompt text {}\n",
      reader.path().string(), std::filesystem::file_size(reader.path()), info.capture_id,
      state_of(reader), info.model_id, info.model_revision, reader.layers().size(),
      info.num_hidden_layers, info.compute_dtype, info.attn_implementation, info.device,
      info.storage_dtype, info.created_utc, info.creator, reader.tokens().ids.size(),
      info.config_json.empty() ? "absent" : "stored",
      info.prompt_text.empty() ? "absent" : "stored");
  text += fmt::format("annotations: {}\n", reader.annotations().size());
  for (const Annotation& annotation : reader.annotations()) {
    text += fmt::format("  [{}, {})  {}, group {}{}{}\n", annotation.tokens.begin,
                        annotation.tokens.end, name_of_kind(annotation.kind), annotation.group,
                        annotation.label.empty() ? "" : ": ", annotation.label);
  }
  text += fmt::format("layers: {}\n", reader.layers().size());
  for (const CaptureLayer& layer : reader.layers()) {
    text += layer_text(layer);
  }
  return text;
}

std::string inspect_json(const CaptureReader& reader) {
  const CaptureInfo& info = reader.info();
  std::string text = fmt::format("{{\n  \"path\": {},\n  \"bytes\": {},\n  \"verified\": \"{}\",\n",
                                 json_quoted(reader.path().string()),
                                 std::filesystem::file_size(reader.path()), state_of(reader));
  for (const CaptureTextAttribute& row : capture_text_attributes()) {
    text += fmt::format("  \"{}\": {},\n", row.name, json_quoted(info.*row.member));
  }
  text += fmt::format("  \"num_hidden_layers\": {},\n  \"n_tokens\": {},\n  \"annotations\": [",
                      info.num_hidden_layers, reader.tokens().ids.size());
  std::string separator = "\n";
  for (const Annotation& annotation : reader.annotations()) {
    text += fmt::format(
        "{}    {{\"begin\": {}, \"end\": {}, \"kind\": \"{}\", \"group\": {}, \"label\": {}}}",
        separator, annotation.tokens.begin, annotation.tokens.end, name_of_kind(annotation.kind),
        annotation.group, json_quoted(annotation.label));
    separator = ",\n";
  }
  text += "],\n  \"layers\": [";
  separator = "\n";
  for (const CaptureLayer& layer : reader.layers()) {
    text += separator + layer_json(layer);
    separator = ",\n";
  }
  return text + "]\n}\n";
}

}  // namespace quoka
