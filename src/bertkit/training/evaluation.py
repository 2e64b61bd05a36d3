"""Losses and hit rates of a model over a whole split."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.contracts import BatchSource
from bertkit.data.batches import OrderedSource
from bertkit.model import Model
from bertkit.training.precision import Precision, autocast


def evaluate_losses(
    model: Model, source: BatchSource, *, batch_size: int, precision: Precision, limit: int | None = None
) -> dict[str, float]:
    """Mean of every loss term and hit rate over the first ``limit`` examples (epoch 0), dropout off.

    Of a source with an order of its own they are so many batches; what the encoder carries is as it was afterwards.
    """
    device = next(model.parameters()).device
    was_training, state = model.training, model.encoder.state()
    model.eval()
    model.encoder.load_state({})
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    with torch.inference_mode(), autocast(device, precision):
        for indices in _list_batches(source, batch_size, min(len(source), limit or len(source))):
            batch = source.batch(0, indices).to(device)
            outputs = model(batch)
            for name, term in {**model.loss(outputs, batch), **model.metrics(outputs, batch)}.items():
                sums[name] = sums.get(name, 0.0) + float(term.sum)
                counts[name] = counts.get(name, 0) + term.count
            del outputs  # before there are those of the next batch
    model.train(was_training)
    model.encoder.load_state(state)
    return {name: total / max(1, counts[name]) for name, total in sums.items()}


def _list_batches(source: BatchSource, batch_size: int, stop: int) -> Iterator[NDArray[np.int64]]:
    if isinstance(source, OrderedSource):
        steps = min(source.num_batches(batch_size), -(-stop // batch_size))
        yield from (source.order(batch_size, step) for step in range(steps))
        return
    for start in range(0, stop, batch_size):
        yield np.arange(start, min(start + batch_size, stop))
