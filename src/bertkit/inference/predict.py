"""From examples to predictions: the one way that evaluation, batch prediction, Python and a server all go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bertkit.batch import Feature
from bertkit.contracts import Task, Tokenizer
from bertkit.data.features import collate
from bertkit.errors import DivergenceError
from bertkit.training.precision import Precision, autocast, choose_precision

_BATCHES_IN_A_CHUNK = 32

_Row = Mapping[str, NDArray[Any]]
_Encoded = tuple[Any, list[Feature]]


def predict(
    model: nn.Module,
    task: Task,
    examples: Iterable[Any],
    tokenizer: Tokenizer,
    *,
    batch_size: int = 64,
    precision: Precision | None = None,
) -> list[Any]:
    """The task's answer to every example, in their order; ``model`` is a Model or an Ensemble."""
    return list(stream(model, task, examples, tokenizer, batch_size=batch_size, precision=precision))


def stream(
    model: nn.Module,
    task: Task,
    examples: Iterable[Any],
    tokenizer: Tokenizer,
    *,
    batch_size: int = 64,
    precision: Precision | None = None,
) -> Iterator[Any]:
    """The same, one by one, for input without an end: never more than a chunk of examples is in memory.

    Within a chunk, inputs of similar length share a batch. The answers are the same for every batch size, but for
    the rounding of the number format (``precision``, by default whichever is fast on the model's device).
    """
    device = next(model.parameters()).device
    precision = precision or choose_precision(device)
    for chunk in _chunks(task.encode_all(examples, tokenizer), _BATCHES_IN_A_CHUNK * batch_size):
        features = [feature for _, own in chunk for feature in own]
        rows = iter(_run(model, features, tokenizer.pad_id, batch_size, precision))
        for example, own in chunk:
            yield task.decode(example, own, list(islice(rows, len(own))))


def _chunks(encoded: Iterable[_Encoded], size: int) -> Iterator[list[_Encoded]]:
    """Examples until they have ``size`` features together."""
    chunk: list[_Encoded] = []
    count = 0
    for example, features in encoded:
        chunk.append((example, features))
        count += len(features)
        if count >= size:
            yield chunk
            chunk, count = [], 0
    if chunk:
        yield chunk


def _run(
    model: nn.Module, features: Sequence[Feature], pad_id: int, batch_size: int, precision: Precision
) -> list[_Row]:
    """What the model says to each feature; the longest go first, so that too large a batch fails at once."""
    device = next(model.parameters()).device
    order = sorted(range(len(features)), key=lambda place: -len(features[place]))
    rows: list[_Row] = [{}] * len(features)
    was_training = model.training
    model.eval()
    with torch.inference_mode(), autocast(device, precision):
        for start in range(0, len(order), batch_size):
            places = order[start : start + batch_size]
            batch = collate([features[place] for place in places], pad_id=pad_id).to(device)
            outputs = _to_numpy(model(batch).values())
            for number, place in enumerate(places):
                rows[place] = {name: np.asarray(values[number]) for name, values in outputs.items()}
    model.train(was_training)
    return rows


def _to_numpy(outputs: Iterable[Mapping[str, torch.Tensor]]) -> dict[str, NDArray[Any]]:
    """All outputs of all heads under their own names, in float32."""
    arrays = {name: tensor.float().cpu().numpy() for each in outputs for name, tensor in each.items()}
    if not all(np.isfinite(values).all() for values in arrays.values()):
        raise DivergenceError(
            "the model answers with numbers that are not finite: its weights are damaged or diverged."
        )
    return arrays
