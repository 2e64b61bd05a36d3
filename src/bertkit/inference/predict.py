"""From examples to predictions: the one function that evaluation, batch prediction and ``Pipeline`` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, repeat
from threading import Barrier
from typing import TypeVar, cast

import numpy as np
import torch
from torch import nn

from bertkit.batch import Feature
from bertkit.contracts import E, OutputArrays, P, Task, Tokenizer
from bertkit.data.batches import prefetch
from bertkit.data.features import collate
from bertkit.errors import DivergenceError
from bertkit.machine.precision import Precision, autocast
from bertkit.training.evaluation import evaluation_mode

T = TypeVar("T")

BATCH_SIZE = 64
BATCHES_IN_A_CHUNK = 32
"""Inputs of similar length share a batch only within a chunk; a longer one would need more memory."""

_TOKENS_IN_A_BATCH = {"cpu": 1024, "cuda": 16384}
"""The most tokens of a batch, padding included. On a CPU the states of more would leave the cache of a core."""

_LEAST_PARALLEL = 2
"""Batches per thread; of fewer, all threads share each one, so that none is idle at the end."""


def predict(
    model: nn.Module,
    task: Task[E, P],
    examples: Iterable[E],
    tokenizer: Tokenizer,
    *,
    batch_size: int = BATCH_SIZE,
    precision: Precision = "float32",
) -> list[P]:
    """The prediction for every example, in their order; ``model`` is a Model or an Ensemble."""
    return list(stream(model, task, examples, tokenizer, batch_size=batch_size, precision=precision))


def stream(
    model: nn.Module,
    task: Task[E, P],
    examples: Iterable[E],
    tokenizer: Tokenizer,
    *,
    batch_size: int = BATCH_SIZE,
    precision: Precision = "float32",
) -> Iterator[P]:
    """Like ``predict``, one prediction at a time: at most two chunks are in memory, so the input may be endless.

    Within a chunk, inputs of similar length share a batch. Predictions are the same for every batch size, except for
    the rounding of ``precision``; they are the same to the last bit from any multiple of ``BATCHES_IN_A_CHUNK *
    batch_size`` examples on, where a chunk always begins.
    """
    for example, features, rows in run_examples(
        model, task, examples, tokenizer, batch_size=batch_size, precision=precision
    ):
        yield task.decode(example, features, rows)


def run_examples(
    model: nn.Module,
    task: Task[E, P],
    examples: Iterable[E],
    tokenizer: Tokenizer,
    *,
    batch_size: int = BATCH_SIZE,
    precision: Precision = "float32",
) -> Iterator[tuple[E, list[Feature], list[OutputArrays]]]:
    """Each example with its features and the outputs of the model for them, before they become a prediction."""
    chunks = _chunks(task.encode_all(examples, tokenizer), BATCHES_IN_A_CHUNK * batch_size)
    for chunk in _read_ahead(chunks):
        features = [feature for _, own in chunk for feature in own]
        rows = iter(run_features(model, features, tokenizer.pad_id, batch_size, precision))
        for example, own in chunk:
            yield example, own, list(islice(rows, len(own)))


def _read_ahead(chunks: Iterator[T]) -> Iterator[T]:
    """The same chunks; a thread tokenizes the next one while the model computes the last."""
    end = object()
    for chunk in prefetch(repeat(lambda: next(chunks, end)), workers=1):
        if chunk is end:
            return
        yield cast(T, chunk)


def _chunks(encoded: Iterable[tuple[E, list[Feature]]], size: int) -> Iterator[list[tuple[E, list[Feature]]]]:
    """Examples in their order; a chunk ends when it has ``size`` features, and after every ``size``-th example."""
    chunk: list[tuple[E, list[Feature]]] = []
    count = 0
    for number, (example, features) in enumerate(encoded, start=1):
        chunk.append((example, features))
        count += len(features)
        if count >= size or number % size == 0:
            yield chunk
            chunk, count = [], 0
    if chunk:
        yield chunk


def run_features(
    model: nn.Module, features: Sequence[Feature], pad_id: int, batch_size: int, precision: Precision
) -> list[OutputArrays]:
    """The outputs for each feature, in their order; a batch has ``batch_size`` features at most.

    The largest features go first, so that a batch too large for the memory fails at once. On a CPU several batches are
    computed at a time, each by one core.
    """
    device = next(model.parameters()).device
    batches = _divide(features, batch_size, device)
    rows: list[OutputArrays] = [{}] * len(features)

    def run(places: Sequence[int]) -> None:
        with torch.inference_mode(), autocast(device, precision):
            batch = collate([features[place] for place in places], pad_id=pad_id).to(device)
            outputs = _to_numpy(model(batch).values())
        for number, place in enumerate(places):
            rows[place] = {name: np.asarray(values[number]) for name, values in outputs.items()}

    with evaluation_mode(model):
        _run_all(run, batches, torch.get_num_threads() if device.type == "cpu" else 1)
    return rows


def count_padding(features: Sequence[Feature], batch_size: int, device: torch.device) -> int:
    """The entries without a token in the batches that ``run_features`` makes of the features."""
    batches = ([features[place] for place in places] for places in _divide(features, batch_size, device))
    return sum(
        sum(each.num_rows for each in batch) * max(map(len, batch)) - sum(each.num_tokens for each in batch)
        for batch in batches
    )


def _run_all(run: Callable[[Sequence[int]], None], batches: Sequence[Sequence[int]], threads: int) -> None:
    """``run`` for each of ``batches``: as many at a time as there are ``threads``, of one core each.

    Threads that share every product of one batch wait for each other after each: 12 % slower with two.
    """
    if threads == 1 or len(batches) < _LEAST_PARALLEL * threads:
        for batch in batches:
            run(batch)
        return
    begun = Barrier(threads + 1)

    def begin() -> None:
        torch.get_num_threads()  # the first use in a thread sets the number that was set last: before, not after
        torch.set_num_threads(1)
        begun.wait()

    with ThreadPoolExecutor(threads, initializer=begin) as pool:
        try:
            finished = pool.map(run, batches)
            begun.wait()
        except BaseException:  # Ctrl-C, or no memory for a thread: the others are not to wait for ever
            begun.abort()
            raise
        # PyTorch gives the number that was set last to threads of the caller's program that begin from now on.
        torch.set_num_threads(threads)
        for _ in finished:
            pass


def _divide(features: Sequence[Feature], batch_size: int, device: torch.device) -> list[Sequence[int]]:
    """The places of the features of each batch, the largest first: as many as a batch may have."""
    sizes = [len(feature) * feature.num_rows for feature in features]
    order = sorted(range(len(features)), key=lambda place: -sizes[place])
    budget = _TOKENS_IN_A_BATCH.get(device.type, _TOKENS_IN_A_BATCH["cuda"])
    batches: list[Sequence[int]] = []
    start = 0
    while start < len(order):
        size = min(batch_size, max(1, budget // max(1, sizes[order[start]])))
        batches.append(order[start : start + size])
        start += size
    return batches


def _to_numpy(outputs: Iterable[Mapping[str, torch.Tensor]]) -> OutputArrays:
    """All outputs of all heads under their own names, in float32."""
    arrays = {name: tensor.float().cpu().numpy() for each in outputs for name, tensor in each.items()}
    if not all(np.isfinite(values).all() for values in arrays.values()):
        raise DivergenceError(
            "the model's outputs are not finite: its weights are damaged, or its training diverged; "
            "train again with a lower --lr."
        )
    return arrays
