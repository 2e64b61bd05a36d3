"""An unfinished restart on disk, from which the same command continues with the bits that it would have had.

It is written every ten minutes, and where a signal stops the restart, into ``RUN/checkpoints/``. The cached states of
a frozen encoder are not: they are computed again, beside other rows, and may differ in their last digit.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from bertkit.checkpoint import training_state as store
from bertkit.config.records import from_plain, to_plain
from bertkit.errors import BertkitError
from bertkit.finetuning.epoch_selection import DevScores, EpochSelection
from bertkit.metrics.classification import ClassScore
from bertkit.report.progress import Progress
from bertkit.runs import RunFolder
from bertkit.scores import Score
from bertkit.storage.atomic import explain_writing, remove_folder
from bertkit.task_types import FileTask
from bertkit.training.fit import TrainingState

_SECONDS_BETWEEN_SAVES = 600.0
_BEST = "best"
"""The group of tensors with the weights of the best epoch."""


@dataclass(slots=True)
class Effort:
    """What a restart has taken so far: seconds in all, seconds of its steps, their examples, and skipped steps."""

    seconds: float = 0.0
    step_seconds: float = 0.0
    examples: int = 0
    skipped: int = 0


@dataclass(frozen=True, kw_only=True)
class _SavedSeed:
    """The state of a restart beside its tensors and its task."""

    seed: int
    step: int
    skipped_in_a_row: int
    effort: Effort
    epochs: list[dict[str, Score]]
    best_epoch: int
    best_scores: dict[str, Score] = field(default_factory=dict)
    best_parts: list[ClassScore] = field(default_factory=list)


class UnfinishedSeed:
    """The restart with ``seed`` in a run folder."""

    def __init__(self, folder: RunFolder, seed: int) -> None:
        self._folder, self._seed = folder, seed
        self._saved = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether it is time to save again."""
        return time.monotonic() - self._saved > _SECONDS_BETWEEN_SAVES

    def save(self, state: TrainingState, selection: EpochSelection, effort: Effort) -> None:
        """Write everything that a later step depends on; a BertkitError if it cannot be written."""
        best = selection.best
        saved = _SavedSeed(
            seed=self._seed,
            step=state.step,
            skipped_in_a_row=state.skipped_in_a_row,
            effort=effort,
            epochs=selection.epochs,
            best_epoch=selection.best_epoch,
            best_scores={} if best is None else best.scores,
            best_parts=[] if best is None else best.parts,
        )
        record = {**to_plain(saved), "task": None if best is None else to_plain(best.task)}
        self._folder.flush_log()
        groups = {**state.groups(), _BEST: selection.weights}
        written = store.save(self._folder.checkpoints, state.step, groups, record)
        store.prune(self._folder.checkpoints, 1, intact=[written])
        self._saved = time.monotonic()

    def try_to_save(self, state: TrainingState, selection: EpochSelection, effort: Effort, progress: Progress) -> None:
        """``save``, or say why not: a disk with room for the result alone does not end the training."""
        try:
            self.save(state, selection, effort)
        except BertkitError as error:
            progress.say(f"{error} The training goes on; an interruption would lose this seed.")
            self._saved = time.monotonic()

    def restore(self, state: TrainingState, selection: EpochSelection, task: FileTask) -> Effort:
        """Set ``state`` and ``selection`` to what was saved of this seed; without that they stay as they are.

        ``task`` is that of the run. Records in the log of steps that follow are deleted.
        """
        effort = Effort()
        newest, _ = store.latest(self._folder.checkpoints)
        if newest is not None and store.load_state(newest).get("seed") == self._seed:
            groups, record = store.load(newest)
            effort = _restore(state, selection, task, groups, record)
        else:
            delete_unfinished(self._folder)  # of a seed that was finished before a process was killed
        self._folder.delete_records(lambda each: each.get("seed") == self._seed and each["step"] > state.step)
        return effort


def delete_unfinished(folder: RunFolder) -> None:
    """Delete what was saved: the seed is finished."""
    with explain_writing(folder.checkpoints):
        if folder.checkpoints.is_dir():
            remove_folder(folder.checkpoints)


def _restore(
    state: TrainingState, selection: EpochSelection, task: FileTask, groups: dict[str, Any], record: dict[str, Any]
) -> Effort:
    best_task = record.pop("task")
    saved = from_plain(_SavedSeed, record, source="the checkpoint")
    selection.weights = groups.pop(_BEST)
    selection.epochs, selection.best_epoch = saved.epochs, saved.best_epoch
    if best_task is not None:
        calibrated = from_plain(type(task), best_task, source="the task of the checkpoint")
        selection.best = DevScores(task=calibrated, scores=saved.best_scores, parts=saved.best_parts)
    state.restore(groups, saved.step, saved.skipped_in_a_row)
    return saved.effort
