"""The check before the long run: on a short prompt the captured model must be the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict

import torch

from .errors import CaptureError, Refused, require
from .layers import Layer
from .recorder import Recorder, installed, reference, run

TOKENS = 64
# Largest difference of one layer's output, relative to the largest output: rounding of the
# probabilities and of the output to the model's type, and float32 sums in another order.
LAYER_TOLERANCE = {torch.float32: 1e-4, torch.float16: 5e-3, torch.bfloat16: 4e-2}
# Largest difference of the logits in standard deviations of the logits: float32 rounding carried through
# the layers. In 16 bits it says nothing where layers were compared, and this much where they were not.
LOGIT_TOLERANCE = {torch.float32: 5e-3, torch.float16: 0.1, torch.bfloat16: 0.5}


@dataclass
class Report:
    layers: Dict[int, Layer]
    layer_error: float  # worst layer, relative; nan if the class has no eager function to compare with
    logit_error: float  # in standard deviations


def check(model, ids: torch.Tensor) -> Report:
    """Runs the first tokens of ids twice and compares; refuses a model that is not captured right."""
    require(not model.training, Refused, "the model is in training mode; call model.eval()")
    ids = ids[:TOKENS]
    recorder = Recorder()
    try:
        with reference(model):
            expected = run(model, ids, logits=True)
    except CaptureError:  # an interruption
        raise
    except Exception as error:
        raise Refused(f"{type(model).__name__} does not run on {len(ids)} tokens: {error}") from error
    try:
        with installed(model, recorder):
            logits = run(model, ids, logits=True)
    except CaptureError:
        raise
    except Exception as error:
        raise Refused(f"{type(model).__name__} does not run with the attention of this script, so it probably"
                      f" computes with its mask ({type(error).__name__}: {error})") from error
    require(recorder.layers, Refused, f"{type(model).__name__} never calls its attention through transformers'"
            " attention interface, and this script has no adapter for it")
    return judge(model, recorder, expected, logits)


def judge(model, recorder, expected, logits) -> Report:
    dtype = next(model.parameters()).dtype
    require(dtype in LAYER_TOLERANCE, Refused, f"the model runs in {dtype} (float32, bfloat16 or float16 are known)")
    for index, error in recorder.eager_errors.items():
        require(error <= LAYER_TOLERANCE[dtype], Refused,
                f"layer {index}: on {TOKENS} tokens the captured attention differs from the model's eager"
                f" attention by {error:.2g} of its largest value (at most {LAYER_TOLERANCE[dtype]:.2g} is"
                " rounding); something shapes this softmax that version 1 or this script does not know")
    error = float((logits - expected).abs().max() / expected.std().clamp_min(1e-30))
    compared = recorder.layers.keys() <= recorder.eager_errors.keys()
    if dtype == torch.float32 or not compared:
        require(error <= LOGIT_TOLERANCE[dtype], Refused,
                f"on {TOKENS} tokens the logits of the captured model differ from those of its own attention by"
                f" {error:.2g} standard deviations (at most {LOGIT_TOLERANCE[dtype]:.2g} is rounding); something"
                " shapes a softmax that version 1 or this script does not know")
    worst = max(recorder.eager_errors.values(), default=float("nan"))
    return Report(recorder.layers, worst, error)
