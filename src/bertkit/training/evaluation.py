"""Losses and hit rates of a model over a whole split."""

from __future__ import annotations

import numpy as np
import torch

from bertkit.contracts import BatchSource
from bertkit.model import Model
from bertkit.training.precision import Precision, autocast


def evaluate_losses(
    model: Model, source: BatchSource, *, batch_size: int, precision: Precision, limit: int | None = None
) -> dict[str, float]:
    """Mean of every loss term and hit rate over the first ``limit`` examples (epoch 0), dropout off."""
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    stop = min(len(source), limit or len(source))
    with torch.inference_mode(), autocast(device, precision):
        for start in range(0, stop, batch_size):
            batch = source.batch(0, np.arange(start, min(start + batch_size, stop))).to(device)
            outputs = model(batch)
            for name, term in {**model.loss(outputs, batch), **model.hits(outputs, batch)}.items():
                sums[name] = sums.get(name, 0.0) + float(term.sum)
                counts[name] = counts.get(name, 0) + term.count
            del outputs  # before there are those of the next batch
    model.train(was_training)
    return {name: total / max(1, counts[name]) for name, total in sums.items()}
