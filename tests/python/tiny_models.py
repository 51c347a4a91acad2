"""Small instances, with random weights, of the real model classes: nothing is downloaded.

4 layers, 8 query and 2 KV heads where the class allows it, windows and chunks shorter than the prompts of the
tests. Weights are large enough for attention to be far from uniform.
"""

from __future__ import annotations

import torch
from transformers import AutoConfig, AutoModelForCausalLM

BASE = {
    "vocab_size": 96, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 512, "pad_token_id": 0,
    "bos_token_id": 1, "eos_token_id": 2,
}
WINDOW, CHUNK = 48, 64
ALTERNATING = ["sliding_attention", "full_attention"] * 2
EXPERTS = {"num_experts_per_tok": 2, "num_local_experts": 4, "num_experts": 4, "moe_intermediate_size": 32,
           "n_routed_experts": 4}
MLA = {"num_key_value_heads": 8, "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16,
       "qk_rope_head_dim": 8, "v_head_dim": 12, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
       "n_shared_experts": 1}
OLD = {"vocab_size": 96, "hidden_size": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
FALCON = {**OLD, "num_hidden_layers": 3, "num_attention_heads": 8, "max_position_embeddings": 512}

# name -> (model_type, settings beyond BASE). Those that must be captured.
MODELS = {
    "llama": ("llama", {}),
    "mistral (window)": ("mistral", {"sliding_window": WINDOW}),
    "qwen2": ("qwen2", {}),
    "qwen2 (window)": ("qwen2", {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 2}),
    "qwen3": ("qwen3", {"head_dim": 24}),
    "gemma2": ("gemma2", {"head_dim": 16, "sliding_window": WINDOW, "attn_logit_softcapping": 2.0,
                          "query_pre_attn_scalar": 30}),
    "gemma3": ("gemma3_text", {"head_dim": 16, "sliding_window": WINDOW, "layer_types": ALTERNATING}),
    "gpt_oss": ("gpt_oss", {"head_dim": 16, "sliding_window": WINDOW, **EXPERTS}),
    "smollm3": ("smollm3", {"no_rope_layers": [1, 1, 1, 0]}),
    "cohere2": ("cohere2", {"sliding_window": WINDOW}),
    "llama4": ("llama4_text", {"attention_chunk_size": CHUNK, "head_dim": 16, "intermediate_size_mlp": 64,
                               "no_rope_layers": [1, 1, 1, 0], "floor_scale": 32, **EXPERTS}),
    "deepseek_v3": ("deepseek_v3", {**MLA, **EXPERTS}),
    "granite": ("granite", {"attention_multiplier": 0.4}),
    "phi3 (window)": ("phi3", {"sliding_window": WINDOW}),
    "olmo2": ("olmo2", {}),
    "bloom": ("bloom", {**OLD, "n_layer": 3, "n_head": 8}),
    "mpt": ("mpt", {**OLD, "d_model": 64, "n_heads": 8, "n_layers": 3, "max_seq_len": 256}),
    "mpt (12 heads, clipped)": ("mpt", {**OLD, "hidden_size": 96, "n_heads": 12, "n_layers": 3, "max_seq_len": 256,
                                        "attn_config": {"clip_qkv": 1.5, "softmax_scale": 0.2}}),
    "falcon (multi query)": ("falcon", {**FALCON, "multi_query": True, "new_decoder_architecture": False}),
    "falcon (new architecture)": ("falcon", {**FALCON, "num_kv_heads": 2, "new_decoder_architecture": True}),
    "falcon (alibi)": ("falcon", {**FALCON, "alibi": True, "multi_query": False, "new_decoder_architecture": False}),
}
# More classes for the table of docs/models.md; the tests do not need them.
MORE_MODELS = {
    "gemma": ("gemma", {"head_dim": 16}),
    "gemma3n": ("gemma3n_text", {"head_dim": 16, "sliding_window": WINDOW, "layer_types": ALTERNATING,
                                 "num_kv_shared_layers": 2, "hidden_size_per_layer_input": 8,
                                 "vocab_size_per_layer_input": 96, "laurel_rank": 8, "altup_num_inputs": 2,
                                 "activation_sparsity_pattern": [0.0] * 4, "intermediate_size": [64] * 4}),
    "gemma4": ("gemma4_text", {"head_dim": 16, "global_head_dim": 24, "sliding_window": WINDOW,
                               "layer_types": ALTERNATING, "num_kv_shared_layers": 2,
                               "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 96}),
    "olmo3": ("olmo3", {"sliding_window": WINDOW, "layer_types": ALTERNATING}),
    "exaone4": ("exaone4", {"sliding_window": WINDOW, "layer_types": ALTERNATING}),
    "cohere": ("cohere", {}), "glm4": ("glm4", {"head_dim": 16}), "starcoder2": ("starcoder2", {}),
    "stablelm": ("stablelm", {}), "phi": ("phi", {}), "nemotron": ("nemotron", {}), "ernie4_5": ("ernie4_5", {}),
    "mixtral": ("mixtral", {"sliding_window": WINDOW, **EXPERTS}),
    "qwen3_moe": ("qwen3_moe", {"head_dim": 16, **EXPERTS}),
    "glm4_moe": ("glm4_moe", {"head_dim": 16, "n_group": 1, "topk_group": 1, **EXPERTS}),
    "deepseek_v2": ("deepseek_v2", {**MLA, **EXPERTS}),
    "qwen3_next": ("qwen3_next", {"head_dim": 16, "layer_types": ["linear_attention", "full_attention"] * 2,
                                  "shared_expert_intermediate_size": 32, "linear_num_value_heads": 4,
                                  "linear_num_key_heads": 2, "linear_key_head_dim": 16,
                                  "linear_value_head_dim": 16, **EXPERTS}),
    "lfm2": ("lfm2", {"layer_types": ["conv", "full_attention"] * 2}),
    "gpt2": ("gpt2", {**OLD, "n_embd": 64, "n_layer": 3, "n_head": 8, "n_positions": 512}),
    "gpt_neox": ("gpt_neox", {}),
    "opt": ("opt", {"ffn_dim": 64, "word_embed_proj_dim": 64, "num_key_value_heads": 8}),
    "jetmoe": ("jetmoe", {"kv_channels": 16, **EXPERTS}),
    "gptj": ("gptj", {**OLD, "n_embd": 64, "n_layer": 3, "n_head": 4, "rotary_dim": 8}),
}


def make(model_type: str, settings: dict, dtype=torch.float32, implementation: str = "eager"):
    """The model in evaluation mode; the same weights every time."""
    old = "pad_token_id" in settings  # the old classes name their sizes differently
    config = AutoConfig.for_model(model_type, **(settings if old else {**BASE, **settings}))
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=implementation)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim >= 2:
                weight.normal_(0, 0.25)
            elif "sinks" in name:
                weight.normal_(0, 2)
    return model.to(dtype).eval()


def prompt_ids(n_tokens: int):
    return torch.randint(3, 96, (n_tokens,), generator=torch.Generator().manual_seed(2)).numpy().astype("int32")
