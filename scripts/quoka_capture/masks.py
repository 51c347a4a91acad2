"""The mask that a model would hand to its eager attention, block by block, and its comparison with attributes."""

from __future__ import annotations

import torch
from transformers.masking_utils import eager_mask

from .attention import Softmax, visible
from .errors import Refused, require

ROWS = 256


class LazyMask:
    """The arguments of an eager mask. It is evaluated for some rows at a time: no [T, T] array.

    Models pass it on to their attention untouched. A model that computes with it fails, and is refused.
    """

    ndim = 0  # Falcon adds its ALiBi bias to masks of 4 dimensions; the adapter applies it instead

    def __init__(self, arguments):
        self.arguments = arguments
        self.agreed = set()  # what it was found equal to

    def to(self, *_, **__):
        """MPT asks for bool."""
        return self

    def __getitem__(self, parts):
        """Some models cut the mask to the tokens that they keep; here that must be all of them."""
        sizes = (self.arguments["batch_size"], 1, self.arguments["q_length"], self.arguments["kv_length"])
        require(isinstance(parts, tuple) and len(parts) == 4 and all(
            isinstance(part, slice) and part.indices(size) == (0, size, 1) for part, size in zip(parts, sizes)),
            Refused, f"the model takes the part {parts} of its mask [1, 1, T, T] (all tokens must stay)")
        return self

    def rows(self, begin: int, end: int) -> torch.Tensor:
        """[end - begin, S] bool, True = visible."""
        return as_visible(eager_mask(**{**self.arguments, "q_length": end - begin,
                                        "q_offset": self.arguments.get("q_offset", 0) + begin}))

    def dense(self) -> torch.Tensor:
        """[1, 1, T, S] additive float, as eager attention gets it. For short prompts only."""
        return eager_mask(**self.arguments)


def lazy_mask(**arguments) -> LazyMask:
    """The mask function that is registered beside the attention function."""
    arguments.pop("allow_is_causal_skip", None)
    arguments["allow_is_bidirectional_skip"] = False
    return LazyMask(arguments)


def as_visible(mask: torch.Tensor) -> torch.Tensor:
    """[rows, S] bool from a 4-D bool (True = visible) or additive float mask of one sequence."""
    mask = mask[0, 0]
    if mask.dtype == torch.bool:
        return mask
    hidden = mask <= torch.finfo(mask.dtype).min / 2
    require(bool((hidden | (mask == 0)).all()), Refused,
            "the mask adds finite values to the logits (version 1 of the format has no such bias)")
    return ~hidden


def check_mask(mask, softmax: Softmax, n_tokens: int, layer: int):
    """Refuses a mask that is not what window and attention chunk say."""
    where = f"layer {layer}: the model's mask"
    require(mask is not None, Refused, f"{where} is missing (causality would have to be guessed)")
    lazy = isinstance(mask, LazyMask)
    if not lazy:
        require(torch.is_tensor(mask) and mask.ndim == 4 and mask.shape[:2] == (1, 1), Refused,
                f"{where} is {describe(mask)} (one mask [1, 1, T, T] for all heads is needed)")
    asked = (softmax.window, softmax.chunk, n_tokens)
    if lazy and asked in mask.agreed:
        return
    keys = torch.arange(n_tokens, device=mask.arguments.get("device", "cpu") if lazy else mask.device)
    for begin in range(0, n_tokens, ROWS):
        rows = keys[begin:begin + ROWS]
        arrived = mask.rows(begin, begin + len(rows)) if lazy else as_visible(mask[:, :, begin:begin + ROWS])
        require(arrived.shape == (len(rows), n_tokens), Refused,
                f"{where} has {arrived.shape[-1]} keys and {n_tokens} tokens were given")
        differs = (arrived != visible(rows, keys, softmax)).nonzero()
        if len(differs):
            i, j = differs[0].tolist()
            raise Refused(
                f"{where} {'shows' if arrived[i, j] else 'hides'} key {j} to query {begin + i}, but causal"
                f" order, sliding_window {softmax.window} and attention_chunk {softmax.chunk} say the"
                " opposite (padding, packed sequences, blocks that see their future, or a window that the"
                " model does not hand over; version 1 of the format cannot express it)")
    if lazy:
        mask.agreed.add(asked)


def describe(value) -> str:
    return f"a tensor {list(value.shape)}" if torch.is_tensor(value) else f"a {type(value).__name__}"
