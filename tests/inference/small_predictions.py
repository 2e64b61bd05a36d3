"""A model that repeats its input, and texts for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from bertkit.inference.pipeline import Pipeline
from bertkit.inference.runtime import Runtime
from bertkit.task_types import (
    Prediction,
    TextClassificationTask,
    TextExample,
)

ROWS = 200


class Parrot(Pipeline):
    """Answers a text with itself; ``stop_at`` sends Ctrl-C to this process before that answer."""

    def __init__(self, folder: Path, stop_at: int | None = None) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "weights").write_text("7")
        self.folder, self.folders = folder, (folder,)
        self.stop_at = stop_at
        self.__dict__["runtime"] = Runtime("float32", None)
        self.answered = 0
        self.__dict__["task"] = TextClassificationTask(name="parrot", metric="accuracy", labels=("a", "b"))

    def stream(
        self, examples: Iterable[TextExample], *, batch_size: int = 64, task: object = None
    ) -> Iterator[Prediction]:
        for example in examples:
            if self.answered == self.stop_at:
                os.kill(os.getpid(), signal.SIGINT)
            self.answered += 1
            yield Prediction(example.first, {"a": 0.75, "b": 0.25})


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"text {number}\n" for number in range(ROWS)))
    return path
