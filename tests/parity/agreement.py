"""Tolerances of the comparison with a reference implementation: of single layers, and of whole networks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from bertkit.batch import Batch
from bertkit.model import Model

SIMPLE, COMPOSITE = 1e-5, 1e-4


def close(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    """Assert that no number differs by more than ``tolerance``, absolute and not relative."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)


def close_outputs(model: Model, hf: Any, batch: Batch, inputs: Mapping[str, Tensor], *, words: float) -> None:
    """Assert that the only head of ``model`` answers as ``hf``, a model of transformers, does.

    ``inputs`` are those of ``batch``; ``words`` is the tolerance of logits of single tokens, ``SIMPLE`` that of others.
    """
    (name,) = model.objectives
    real = batch.attention_mask
    if name == "choice":
        inputs = {key: each[None] for key, each in inputs.items()}
    with torch.no_grad():
        answers, expected = model.eval()(batch)[name], hf(**inputs)
    if name == "span":
        for end in ("start", "end"):
            close(answers[end][real], expected[f"{end}_logits"][real], SIMPLE)
    elif name in ("mlm", "tags"):
        close(answers["logits"].view(*real.shape, -1)[real], expected.logits[real], words)
    elif name == "number":
        close(answers["value"], expected.logits[:, 0], SIMPLE)
    else:
        close(answers["logits"], expected.logits, SIMPLE)
