"""capture_hf.py refuses what version 1 of the format cannot express, and what would be wrong without a word."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (scripts/requirements-capture.txt)")

import tiny_models  # noqa: E402
from capture_support import TOKENS, captured, make, prompt_of  # noqa: E402
from quoka_capture.attention import Softmax  # noqa: E402
from quoka_capture.capture import Identity, Options, capture  # noqa: E402
from quoka_capture.errors import Refused, UsageError  # noqa: E402
from quoka_capture.masks import check_mask, lazy_mask  # noqa: E402
from quoka_capture.recorder import Recorder, installed  # noqa: E402


def refused(model, match, ids=None, **inputs):
    ids = torch.tensor(tiny_models.prompt_ids(TOKENS).astype("int64"))[None] if ids is None else ids
    with installed(model, Recorder()), pytest.raises(Refused, match=match), torch.no_grad():
        model(input_ids=ids, use_cache=False, **inputs)


def test_padding_is_refused():
    mask = torch.ones(1, TOKENS, dtype=torch.int64)
    mask[:, :7] = 0
    refused(make("llama"), "hides key 0 to query 0", attention_mask=mask)


def test_packed_sequences_are_refused():
    positions = torch.cat([torch.arange(90), torch.arange(60)])[None]
    refused(make("llama"), "hides key 0 to query 90", position_ids=positions)


def test_a_batch_is_refused(tmp_path):
    refused(make("llama"), "batch of 2", ids=torch.full((2, 9), 5))
    ids = tiny_models.prompt_ids(20).reshape(2, 10)
    with pytest.raises(Refused, match=r"shape \[2, 10\]"):
        capture(make("llama"), prompt_of(ids), Identity(), Options(tmp_path / "x.h5"))


def test_a_window_that_is_only_in_the_mask_is_refused(tmp_path):
    model = make("smollm3", settings={"use_sliding_window": False, "sliding_window": 48,
                                      "layer_types": ["sliding_attention"] * 4})
    with pytest.raises(Refused, match="layer 0: the model's mask hides key 0 to query 48"):
        captured(tmp_path, model)
    assert not list(tmp_path.iterdir())


def test_a_mask_is_compared_with_each_layer_that_it_reaches():
    from transformers.masking_utils import sliding_window_causal_mask_function

    mask = lazy_mask(batch_size=1, q_length=TOKENS, kv_length=TOKENS,
                     mask_function=sliding_window_causal_mask_function(40))
    check_mask(mask, Softmax(1.0, window=40), TOKENS, 0)
    for layer, other in enumerate([Softmax(1.0), Softmax(1.0, window=39), Softmax(1.0, window=41),
                                   Softmax(1.0, window=40, chunk=64)], 1):
        with pytest.raises(Refused, match=f"layer {layer}: the model's mask"):
            check_mask(mask, other, TOKENS, layer)


def test_a_bias_in_the_mask_is_refused():
    bias = torch.zeros(1, 1, TOKENS, TOKENS).masked_fill_(torch.ones(TOKENS, TOKENS).triu(1).bool(), -torch.inf)
    model = make("llama")
    with installed(model, Recorder()), torch.no_grad():  # a causal mask that the caller made is fine
        model(input_ids=torch.full((1, TOKENS), 5), attention_mask=bias, use_cache=False)
    refused(model, "finite values", attention_mask=bias - bias.isfinite() * 0.5)


@pytest.mark.parametrize("name,n_tokens,match", [
    ("jetmoe", TOKENS, "repeats its KV heads"), ("gptj", TOKENS, "computes with its mask"),
    ("falcon (alibi)", 300, "rounded to 16 bits"),
])
def test_classes_that_cannot_be_captured_right_are_refused(name, n_tokens, match, tmp_path):
    with pytest.raises(Refused, match=match):
        captured(tmp_path, make(name), n_tokens)
    assert not list(tmp_path.iterdir())


def test_a_rounded_alibi_bias_is_refused(tmp_path):
    with pytest.raises(Refused, match="rounded"):
        captured(tmp_path, make("bloom", settings={"n_head": 4}, dtype=torch.bfloat16), 300)


def test_what_is_not_known_to_be_harmless_is_refused():
    model = make("llama")
    refused(model, "hands over block_table", block_table=torch.zeros(3))
    refused(model, "s_aux and sinks", s_aux=torch.zeros(8), sinks=torch.zeros(8))
    refused(model, "not causal", is_causal=False)
    model.model.layers[1].self_attn.sinks = torch.zeros(8)
    refused(model, "layer 1 .* has sinks but does not hand them over")


def test_a_softmax_that_the_script_does_not_know_is_refused(tmp_path, monkeypatch):
    """The check on a short prompt finds what neither arguments nor mask say."""
    from transformers.models.llama import modeling_llama

    own = modeling_llama.eager_attention_forward

    def hotter(module, query, key, value, mask, scaling, **more):
        return own(module, query, key, value, mask, scaling=scaling * 1.01, **more)

    monkeypatch.setattr(modeling_llama, "eager_attention_forward", hotter)
    with pytest.raises(Refused, match="layer 0: on 64 tokens the captured attention differs"):
        captured(tmp_path, make("llama"))


def test_training_mode_is_refused(tmp_path):
    with pytest.raises(Refused, match="training mode"):
        captured(tmp_path, make("llama").train())


def test_values_that_float16_cannot_hold_are_refused(tmp_path):
    model = make("llama")
    with torch.no_grad():
        model.model.layers[2].self_attn.v_proj.weight.mul_(1e5)
    with pytest.raises(Refused, match="layer 2: v reaches .* float16 cannot hold; use --dtype bfloat16"):
        captured(tmp_path, model)
    assert not list(tmp_path.iterdir())
    captured(tmp_path, model, storage="bfloat16")


def test_limits_and_outputs_are_checked_before_the_long_run(tmp_path):
    model = make("llama")
    with pytest.raises(UsageError, match="needs .* and --max-bytes allows 1 kB"):
        captured(tmp_path, model, max_bytes=1000)
    with pytest.raises(UsageError, match=r"layers \[7\] have no attention"):
        captured(tmp_path, model, layers=[0, 7])
    with pytest.raises(UsageError, match="KV head 2 is not in layer 0"):
        captured(tmp_path, model, kv_heads=[2])
    assert not list(tmp_path.iterdir())
    before = captured(tmp_path, model, layers=[0]).read_bytes()
    with pytest.raises(UsageError, match="exists; use --overwrite"):
        captured(tmp_path, model)
    assert (tmp_path / "capture.h5").read_bytes() == before
    with pytest.raises(UsageError, match="does not exist; make it first"):
        captured(tmp_path / "none", model)


def test_the_size_estimate_is_the_size_of_the_file(tmp_path):
    path = captured(tmp_path, make("deepseek_v3"), max_bytes=4 * TOKENS * (8 * 2 * (24 + 12) * 2 + 8 * 4))
    assert path.stat().st_size < 1.2 * 4 * TOKENS * (8 * 2 * (24 + 12) * 2 + 8 * 4)
