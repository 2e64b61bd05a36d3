"""Losses and metrics of a model over a split, without training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bertkit.contracts import BatchSource, OrderedSource, Stateful
from bertkit.machine.precision import Precision, autocast
from bertkit.model import Model
from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Turn dropout off inside the ``with`` block, and restore the mode of each module after it, whatever happens there.

    Modules that are in evaluation mode are not changed, so several threads may use them at once.
    """
    trained = [module for module in model.modules() if module.training]
    if not trained:
        yield
        return
    model.eval()
    try:
        yield
    finally:
        for module in trained:
            module.training = True


def evaluate_losses(
    model: Model,
    source: BatchSource,
    *,
    batch_size: int,
    precision: Precision,
    limit: int | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, float]:
    """The mean of every loss term and metric over ``limit`` examples of epoch 0, with dropout off.

    They are spread evenly over the source, whose rows are in the order of the corpus: the first ones would be those of
    the first documents. If the source fixes the order of its batches (ELMo's streams), the fewest batches with
    ``limit`` examples are read.

    The processes of ``group`` call this together and divide the batches among themselves, except those of a source with
    an order of its own, whose rows continue each other. So an objective that compares the examples of a batch compares
    the same ones, however many processes there are.

    ``report(done, total)`` is called after every batch. The model's mode and the encoder's recurrent state are restored
    afterwards.
    """
    if isinstance(source, OrderedSource):
        group = SINGLE_PROCESS
    device = next(model.parameters()).device
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    with evaluation_mode(model), _fresh_state(model.encoder), torch.inference_mode(), autocast(device, precision):
        batches = _list_batches(source, batch_size, min(len(source), limit or len(source)))
        for first in range(0, len(batches), group.size):
            number = first + group.rank
            # Processes with sharded weights make equally many passes: one without a batch reads some, and counts none.
            is_counted = number < len(batches)
            batch = source.batch(0, batches[number if is_counted else 0]).to(device)
            outputs = model(batch)
            for name, term in {**model.loss(outputs, batch), **model.metrics(outputs, batch)}.items():
                sums[name] = sums.get(name, 0.0) + (float(term.sum) if is_counted else 0.0)
                counts[name] = counts.get(name, 0) + (term.count if is_counted else 0)
            report(min(first + group.size, len(batches)), len(batches))
            del outputs  # frees the logits before those of the next batch are allocated
    totals, numbers = group.all_reduce_sum(list(sums.values())), group.all_reduce_sum(list(counts.values()))
    return {name: total / max(1, number) for name, total, number in zip(sums, totals, numbers, strict=True)}


def spread_rows(total: int, count: int) -> NDArray[np.int64]:
    """``count`` of ``total`` rows, spread evenly."""
    return np.arange(count) * total // max(1, count)


@contextmanager
def _fresh_state(encoder: nn.Module) -> Iterator[None]:
    """Clear the recurrent state of an encoder inside the ``with`` block, if it has one, and restore it afterwards."""
    if not isinstance(encoder, Stateful):
        yield
        return
    state = encoder.state()
    encoder.load_state({})
    try:
        yield
    finally:
        encoder.load_state(state)


def _list_batches(source: BatchSource, batch_size: int, count: int) -> list[NDArray[np.int64]]:
    if isinstance(source, OrderedSource):
        steps = min(source.num_batches(batch_size), -(-count // batch_size))
        return [source.order(batch_size, step) for step in range(steps)]
    chosen = spread_rows(len(source), count)
    return [chosen[start : start + batch_size] for start in range(0, count, batch_size)]
