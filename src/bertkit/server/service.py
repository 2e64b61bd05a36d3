"""The models of a server, and the state that all requests share."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.errors import did_you_mean, usage_error
from bertkit.inference.pipeline import load
from bertkit.options.job import InferencePrecision
from bertkit.runs import find_named_folder
from bertkit.server.batching import Batcher
from bertkit.server.errors import ServerError, overloaded, unable
from bertkit.server.keys import ApiKeys
from bertkit.server.limits import Limits
from bertkit.server.metrics import Metrics
from bertkit.server.model_thread import ModelThread
from bertkit.server.models import ServedModel
from bertkit.server.reading import Bodies

LARGE_ANSWER = 65_536
"""Bytes above which asyncio says that a client does not read what was sent."""

_NAMED = re.compile(r"([\w.-]+)=(.+)", re.DOTALL)
_SHOWN = 100
"""Characters of an unknown name; the search for a similar one takes seconds for a name as long as a body."""


@dataclass
class State:
    """``warm`` when every model has run once, ``stopping`` after a signal.

    ``accepted`` counts requests that are being answered or will be, ``running`` those whose body has arrived,
    ``explanations`` those for the pages of attention and saliency, and ``unsent`` the bytes of large answers that are
    being sent.
    """

    warm: bool = False
    stopping: bool = False
    accepted: int = 0
    running: int = 0
    explanations: int = 0
    unsent: int = 0
    begun: float = 0.0


class Service:
    """What the handlers of all protocols use.

    ``models`` are by name, the first one is the default; ``thread`` is where they were loaded. With ``truncate`` a text
    that is too long loses its end although the request did not ask for it. ``document`` is the OpenAPI document of the
    application. Who holds ``explaining`` may compute attention or an explanation.
    """

    def __init__(
        self,
        models: Sequence[ServedModel],
        limits: Limits | None = None,
        *,
        thread: ModelThread | None = None,
        keys: ApiKeys | None = None,
        truncate: bool = False,
    ) -> None:
        self.models = {model.name: model for model in models}
        self.limits = limits or Limits()
        self.keys = keys or ApiKeys()
        self.truncate = truncate
        self.document: Mapping[str, Any] = {}
        self.state = State(begun=time.time())
        self.metrics = Metrics(models)
        self.bodies = Bodies(self.limits)
        self.explaining = asyncio.Semaphore(1)
        self._thread = thread or ModelThread()
        self.batcher = Batcher(self.limits, self._thread, self.metrics.observe_batch)

    def start(self) -> None:
        """Warm each model up, and start to compute batches."""
        for model in self.models.values():
            self._thread.submit(model.warm_up).result()
        self.batcher.start()
        self.state.warm = True

    def stop(self) -> None:
        """Stop computing batches."""
        self.batcher.stop()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count a request while a model works for it; 429 if ``Limits.requests`` are running already."""
        self.state.running += 1
        try:
            if self.state.running > self.limits.requests:
                raise overloaded(1.0)
            yield
        finally:
            self.state.running -= 1

    @contextmanager
    def sending(self, size: int) -> Iterator[bool]:
        """Count an answer of ``size`` bytes while it is sent; whether there is room for it beside others.

        Small answers are never refused, so that clients that do not read hold up only those with large ones; neither is
        a large answer when no other is being sent.
        """
        state, counted = self.state, size if size > LARGE_ANSWER else 0
        fits = not (counted and state.unsent) or state.unsent + counted <= self.limits.held_bytes
        counted *= fits
        state.unsent += counted
        try:
            yield fits
        finally:
            state.unsent -= counted

    def model(
        self, name: str | None, task: str | None = None, prefer: Callable[[ServedModel], bool] = lambda model: True
    ) -> ServedModel:
        """The model of this name; without a name the first that can do ``task``, or the first of all.

        Of several that can, it is the first that ``prefer`` accepts. 404 for an unknown name, 424 if no model can.
        """
        if name is not None:
            if name in self.models:
                return self.models[name]
            shown = name[:_SHOWN]
            hint = f"{did_you_mean(shown, self.models)} There are: {', '.join(self.models)}".strip()
            message = f'no model is named "{shown}".'
            raise ServerError(404, message, field="model", hint=hint, kind="model_not_found")
        able = [model for model in self.models.values() if task is None or task in model.tasks]
        if able:
            return next(filter(prefer, able), able[0])
        known = "; ".join(f"{model.name}: {', '.join(model.tasks)}" for model in self.models.values())
        raise unable(f"no model here can do {task}.", f"There are: {known}")


def load_models(arguments: Sequence[Path | str], precision: InferencePrecision | None = None) -> list[ServedModel]:
    """The models in folders, each named after its folder or as ``NAME=FOLDER`` says."""
    folders: dict[str, Path] = {}
    for argument in arguments:
        name, folder = _split(str(argument))
        if name in folders:
            raise usage_error(f"two models are named {name}: give one of them another name, as in other={folder}.")
        folders[name] = folder
    return [ServedModel(name, load(folder, precision=precision)) for name, folder in folders.items()]


def _split(argument: str) -> tuple[str, Path]:
    if (match := _NAMED.fullmatch(argument)) and not Path(argument).exists():
        return match[1], Path(match[2])
    folder = Path(argument)
    return find_named_folder(folder.absolute()).name or "model", folder


def describe_models(models: Mapping[str, ServedModel]) -> str:
    """One line with the names of the models and what they do."""
    return "; ".join(f"{name} ({', '.join(model.tasks)})" for name, model in models.items())
