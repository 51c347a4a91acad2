"""What the tests of capture_hf.py share. Import it after torch was found to be installed."""

from __future__ import annotations

import os
import subprocess

import numpy as np
import torch
import transformers

import tiny_models
from capture_reference import numbers
from conftest import ROOT
from quoka_capture import prompts
from quoka_capture.capture import Identity, Options, capture

TOKENS = 150
EMBEDDED = ROOT / "data/smollm2-135m_needles_2k.h5"
torch.set_num_threads(1)
transformers.utils.logging.set_verbosity_error()


def prompt_of(ids):
    return prompts.Prompt(" ".join(map(str, ids)), ids)


def captured(folder, model, n_tokens=TOKENS, **options):
    """The path of a capture of random tokens, verified if there is a program to do it."""
    out = folder / "capture.h5"
    capture(model, prompt_of(tiny_models.prompt_ids(n_tokens)), Identity("tiny"), Options(out, **options))
    return verified(out)


def verified(path):
    if os.environ.get("QUOKA_CAPTURE"):
        done = subprocess.run([os.environ["QUOKA_CAPTURE"], "verify", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    return path


def rounding(group):
    """Bound of the relative error of float32 attention: a probability is off by what its logit is off, which is a
    few units in the last place of the largest logit and of the sums (8 covers their number)."""
    longest = [np.linalg.norm(numbers(group[name]), axis=2).max() for name in ("q", "k")]
    return 8 * 2.0**-24 * (8 + group.attrs["softmax_scale"] * longest[0] * longest[1])


def make(name, **more):
    model_type, settings = {**tiny_models.MODELS, **tiny_models.MORE_MODELS}[name]
    return tiny_models.make(model_type, {**settings, **more.pop("settings", {})}, **more)
