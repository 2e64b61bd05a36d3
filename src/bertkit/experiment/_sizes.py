"""What the sizes of a pre-training say of its cost, before anything is measured."""

from __future__ import annotations

import torch

from bertkit.encoders.bert import Bert
from bertkit.model import Model
from bertkit.run import PretrainRun
from bertkit.training.precision import default_device, measure_products


def count_parameters(run: PretrainRun) -> dict[str, int]:
    """By part; the embeddings that the masked-word head shares are counted once, as embeddings."""
    with torch.device("meta"):
        encoder = Bert(run.encoder)
        model = Model(encoder, run.task.objectives(encoder))
    every = sum(parameter.numel() for parameter in model.parameters())
    inside = sum(parameter.numel() for parameter in encoder.parameters())
    embeddings = sum(parameter.numel() for parameter in encoder.embeddings.parameters())
    return {"embeddings": embeddings, "blocks and pooler": inside - embeddings, "heads": every - inside}


def affordable_tokens(run: PretrainRun, seconds: float) -> float:
    """About how many tokens a step of so many seconds reads: 6 FLOP a parameter, at half the speed of products."""
    speed = measure_products(default_device())[str(run.precision)] * 1e9
    return seconds * speed / 2 / (6 * sum(count_parameters(run).values()))
