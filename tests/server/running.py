"""A server in a thread on a free port, and tiny models of every kind to serve."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import torch
from tests.tiny_bert import make_encoder, make_tokenizer

from bertkit.checkpoint.save_model import save_model
from bertkit.inference.pipeline import load
from bertkit.model import Model
from bertkit.pretraining.task import PretrainingTask
from bertkit.server.keys import ApiKeys
from bertkit.server.limits import Limits
from bertkit.server.models import ServedModel
from bertkit.server.run import Server, bind
from bertkit.server.service import Service
from bertkit.task_types import (
    FileTask,
    MultiLabelTask,
    MultipleChoiceTask,
    QuestionAnsweringTask,
    RegressionTask,
    TaggingTask,
    TextClassificationTask,
)

LENGTH = 33

TASKS: dict[str, FileTask] = {
    "reviews": TextClassificationTask(name="r", metric="accuracy", labels=("dry", "wet", "odd"), max_length=LENGTH),
    "inference": TextClassificationTask(
        name="i", metric="accuracy", labels=("entailment", "neutral", "contradiction"), max_length=LENGTH, pair=True
    ),
    "topics": MultiLabelTask(
        name="t",
        labels=("mill", "river", "coin"),
        max_length=LENGTH,
        thresholds={"mill": 0.0, "river": 1.0, "coin": 0.5},
    ),
    "stars": RegressionTask(name="s", metric="pearson", max_length=LENGTH),
    "ranker": RegressionTask(name="n", metric="pearson", max_length=LENGTH, pair=True),
    "names": TaggingTask(name="g", labels=("O", "B-PER", "I-PER", "B-LOC", "I-LOC"), max_length=LENGTH),
    "questions": QuestionAnsweringTask(name="q", max_length=LENGTH, max_query=11, stride=9),
    "choices": MultipleChoiceTask(name="c", max_length=LENGTH),
}


def save_tiny_models(folder: Path) -> Path:
    """A folder with a model for each of ``TASKS``, and ``words``, which fills masks."""
    tokenizer = make_tokenizer()
    for name, task in TASKS.items():
        torch.manual_seed(13)
        encoder = make_encoder(tokenizer)
        save_model(folder / name, Model(encoder, task.objectives(encoder)), tokenizer, metadata={"task": task.record()})
    torch.manual_seed(13)
    encoder = make_encoder(tokenizer)
    model = Model(encoder, PretrainingTask().build_objectives(encoder))
    save_model(folder / "words", model, tokenizer, metadata={"kind": "pretrain"})
    return folder


def served(folder: Path, *names: str) -> list[ServedModel]:
    return [ServedModel(name, load(folder / name)) for name in names]


@contextmanager
def running(
    models: list[ServedModel],
    limits: Limits | None = None,
    *,
    keys: ApiKeys | None = None,
    truncate: bool = False,
    grace: float = 5.0,
    while_loading: Callable[[Server], None] = lambda server: None,
) -> Iterator[Server]:
    """A server that answers; it has stopped afterwards."""
    service = Service(models, limits, keys=keys, truncate=truncate)
    server = Server(service, bind("127.0.0.1", 0), grace=grace)
    ready = threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            server.run(ready.set)
        except BaseException as error:
            failures.append(error)
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        while_loading(server)
        assert ready.wait(60)
        if failures:
            raise failures[0]
        yield server
    finally:
        server.stop()
        thread.join(30)
        assert not thread.is_alive()


def post(server: Server, path: str, body: Any, **headers: str) -> Any:
    """The response to a JSON body, by an ordinary client."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx2.post(server.address + path, json=body, headers=names, timeout=60, verify=False)


def get(server: Server, path: str, **headers: str) -> Any:
    return httpx2.get(server.address + path, headers=headers, timeout=60, verify=False)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
