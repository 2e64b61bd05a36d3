"""Points that optuna samples, in a journal that several processes and machines may share."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from bertkit.optional import require
from bertkit.options.finetuning import Sampler
from bertkit.rng import CounterRng
from bertkit.storage.atomic import explain_writing
from bertkit.storage.json_log import format_record, open_log, read_log, truncate_log
from bertkit.sweeps.search_space import Axis, Point

_STUDY = "sweep"
_SEEDS = 2**32
"""Seeds of NumPy, which samples, are below this."""

_DIGITS = 3
"""Significant digits of a sampled number: more have no effect and make long folder names."""


_Trial = Any
"""``optuna.trial.Trial`` or ``FrozenTrial``."""


def load_optuna() -> ModuleType:
    """The library, which nothing else needs; an error that names the extra where it is not installed."""
    return require("optuna", extra="tune", purpose="--trials")


class Journal:
    """The operations of optuna, one per line with a checksum, read to the first damaged one.

    Optuna's own backend ends with an error at an incomplete line, for ever. Operations after a damaged one refer to
    trials that it may have begun, so they are set aside; the sampler repeats them, and finished points keep their runs.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if os.path.lexists(path):
            with explain_writing(path):
                truncate_log(path)

    def read_logs(self, log_number_from: int) -> list[dict[str, Any]]:
        """The operations from a number on."""
        return read_log(self._path).records[log_number_from:] if self._path.exists() else []

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write operations to the disk."""
        with explain_writing(self._path):
            if self._path.exists():
                truncate_log(self._path)  # a line that another process could not finish would swallow the next
            with open_log(self._path) as file:
                file.writelines(map(format_record, logs))
                file.flush()
                os.fsync(file.fileno())


class Trials:
    """Up to ``count`` points sampled from ``axes``; each trial in the journal is a point.

    A trial stays RUNNING until any process has finished its point. Only the process that holds the lock of the sweep
    may create this object or call ``sample``.
    """

    def __init__(self, journal: Path, axes: Sequence[Axis], count: int, sampler: Sampler, seed: int) -> None:
        self._optuna = load_optuna()
        backend = Journal(journal)
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        self._study = self._optuna.create_study(
            storage=self._optuna.storages.JournalStorage(backend),
            study_name=_STUDY,
            direction="maximize",
            load_if_exists=True,
        )
        self._axes, self._count, self._sampler, self._seed = axes, count, sampler, seed

    def points(self) -> list[Point]:
        """The points sampled so far, in that order, without repetitions."""
        return list(dict.fromkeys(self._point(trial) for trial in self._trials() if self._is_complete(trial)))

    def sample(self, ranks: Mapping[Point, float]) -> bool:
        """Sample one more point; False if there are enough.

        ``ranks`` of the finished ones are higher for better points, and -inf for those without a score.
        """
        trials = self._trials()
        for trial in trials:
            if trial.state.name == "RUNNING" and not self._is_complete(trial):
                self._finish_trial(trial, -math.inf)  # the process that sampled it was killed in between
            elif trial.state.name == "RUNNING" and self._point(trial) in ranks:
                self._finish_trial(trial, ranks[self._point(trial)])
        complete = sum(map(self._is_complete, trials))
        if complete >= self._count:
            return False
        # A new sampler for each point: then the next point depends on the points before it alone, not on the process,
        # and one that was lost with the end of the journal is sampled again.
        # Its seed is a hash: the sum of both numbers would give sweeps with neighbouring seeds nearly the same points.
        seed = int(CounterRng(self._seed, 0, np.array([complete])).below("trial", _SEEDS)[0, 0])
        samplers = self._optuna.samplers
        self._study.sampler = (
            samplers.TPESampler(seed=seed) if self._sampler == "tpe" else samplers.RandomSampler(seed=seed)
        )
        trial = self._study.ask()
        for axis in self._axes:
            _suggest(trial, axis)
        return True

    def _trials(self) -> list[_Trial]:
        return list(self._study.get_trials(deepcopy=False))

    def _finish_trial(self, trial: _Trial, rank: float) -> None:
        states, failed = self._optuna.trial.TrialState, rank == -math.inf
        self._study.tell(trial.number, None if failed else rank, state=states.FAIL if failed else states.COMPLETE)

    def _is_complete(self, trial: _Trial) -> bool:
        return len(trial.params) == len(self._axes)

    def _point(self, trial: _Trial) -> Point:
        return Point(tuple((axis.name, _format(trial.params[axis.name], axis)) for axis in self._axes))


def _suggest(trial: _Trial, axis: Axis) -> None:
    if axis.values:
        trial.suggest_categorical(axis.name, axis.values)
    elif axis.is_integer:
        trial.suggest_int(axis.name, axis.low, axis.high)
    else:
        trial.suggest_float(axis.name, axis.low, axis.high, log=axis.is_logarithmic)


def _format(value: str | int | float, axis: Axis) -> str:
    """The value as it is set; a number is rounded, and then no further than to an end of its range."""
    if not isinstance(value, float):
        return str(value)
    rounded = f"{value:.{_DIGITS}g}"
    return rounded if axis.low <= float(rounded) <= axis.high else str(max(axis.low, min(axis.high, float(rounded))))
