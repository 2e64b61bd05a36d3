"""A sweep: fine-tunings that differ in some settings, divided among all processes that start the same command.

    SWEEP/run.json       the settings, and how it ended
    SWEEP/points/NAME/   the run folder of a point, such as lr=3e-5,batch_size=16
    SWEEP/best           a link to the point with the best mean on dev; only this one keeps its model
    SWEEP/sweep.*        the table (Markdown), the plot, all results (JSON)
    SWEEP/journal.log    the points that optuna sampled

A process that trains a point holds the lock of its run folder, which the operating system releases when the process
ends, however it ends. So no point is trained twice, an interrupted one is free for the next process, and its finished
seeds are kept. Decisions about the whole sweep are made by the process that holds the lock of the sweep's folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.config.records import to_plain
from bertkit.errors import SAME_COMMAND, DivergenceError, count_of
from bertkit.finetuning.data import FinetuningData, check_lengths, load_data
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.run import begin_run, discard_unused_record, fill_in_precision, run_seeds, settings_record
from bertkit.machine.interrupts import Interrupted, Interrupts
from bertkit.options.finetuning import Sampler
from bertkit.report.plots import plot_sweep
from bertkit.report.progress import Progress
from bertkit.runs import DONE, InUseError, RunFolder
from bertkit.scheduling import divide_work
from bertkit.scores import UNDEFINED, rank_score, summarize_scores
from bertkit.storage.atomic import remove_folder, write_file
from bertkit.sweeps.optuna_trials import Trials, load_optuna
from bertkit.sweeps.results import PointResult, SweepResult, format_settings, read_point, write_table
from bertkit.sweeps.search_space import Axis, Point, checked_runs, grid_points


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Fine-tunings of ``base`` with every combination of values on ``axes``, or with ``trials`` sampled combinations.

    All are written to ``base.output``. Every point is trained with all seeds of ``base``.
    """

    base: FinetuneRun
    axes: tuple[Axis, ...]
    trials: int | None = None
    sampler: Sampler = "tpe"


def tune(sweep: Sweep, progress: Progress, *, origins: Mapping[str, str] | None = None) -> SweepResult:
    """Train the points that are not finished, together with other processes, and return when all are finished.

    Raises Interrupted on Ctrl-C or SIGTERM; the same call then continues.
    """
    if sweep.trials is not None:
        load_optuna()
    models = cache(ModelFolder.open)
    for run in checked_runs(sweep.axes, sweep.base, sampled=sweep.trials is not None):
        check_lengths(run, models(run.model))
    worker = _Worker(sweep, progress)
    with Interrupts() as interrupts:
        try:
            worker.begin(origins or {})
            worker.work(interrupts)
        except Interrupted as stop:
            finished, known = len(worker.results()), len(worker.points())
            message = f"stopped; {finished} of {known} points are finished and kept. {SAME_COMMAND}"
            raise Interrupted(interrupts.requested, message) from stop
    return worker.end()


class _Worker:
    """The part of one process in a sweep."""

    def __init__(self, sweep: Sweep, progress: Progress) -> None:
        self._sweep = sweep
        self._base = sweep.base
        self._folder = sweep.base.output
        self._progress = progress
        self._data: FinetuningData | None = None
        self._origins: Mapping[str, str] = {}
        self._grid = [] if sweep.trials else list(grid_points(sweep.axes))
        self._trials: Trials | None = None

    def begin(self, origins: Mapping[str, str]) -> None:
        """Write the record of the sweep, or check that the folder holds the same sweep."""
        with RunFolder(self._folder, wait=True) as folder:
            discard_unused_record(folder)
            self._base, origins = fill_in_precision(self._base, origins, folder)
            settings = {
                "run": settings_record(self._base),
                "axes": to_plain(self._sweep.axes),
                "sampler": self._sweep.sampler if self._sweep.trials else None,
            }
            named = {f"run.{path}": origin for path, origin in origins.items()}
            begin_run(folder, settings, self._base, kind="tune", origins=named)
            self._origins = origins
            if count := self._sweep.trials:
                journal = self._folder / "journal.log"
                self._trials = Trials(journal, self._sweep.axes, count, self._sweep.sampler, seed=self._base.first_seed)
        finished = len(self.results())
        total = max(self._sweep.trials or len(self._grid), finished)
        points, seeds = count_of(total, "point"), count_of(self._base.seeds, "seed")
        self._progress.say(f"{points} of {seeds}, {finished} finished before")

    def work(self, interrupts: Interrupts) -> None:
        """Train points until none is left, and wait for those that other processes train."""

        def attempt() -> bool:
            ran = [self._run_if_free(point, interrupts) for point in self.points()]
            return any(ran) or self._sample()

        def stop_if_requested() -> None:
            if interrupts.requested:
                raise Interrupted(interrupts.requested, "")

        divide_work(attempt, lambda: len(self.results()) == len(self.points()), self._progress, stop_if_requested)

    def end(self) -> SweepResult:
        """Write the table, the plot and the end of the record; raises DivergenceError if all points failed."""
        with RunFolder(self._folder, wait=True) as folder:
            result = self._update_best()
            series = [(format_settings(each.settings), each.scores) for each in result.points if each.scores]
            if result.best is None:
                reason = result.points[0].failed
                raise DivergenceError(f"all {len(result.points)} points have failed; the first one: {reason}")
            if self._sweep.trials and len(result.points) < self._sweep.trials:
                different = count_of(len(result.points), "different configuration")
                self._progress.say(f"{count_of(self._sweep.trials, 'trial')} gave {different}")
            plot_sweep(series, result.metric, self._folder / "sweep.svg")
            folder.note(ended=DONE, best=result.best.settings, mean=to_plain(result.best.mean))
        return result

    def points(self) -> list[Point]:
        """The points of the grid, or those sampled so far."""
        return self._trials.points() if self._trials else self._grid

    def results(self) -> dict[Point, PointResult]:
        """The results of the finished points."""
        found = {point: self._result(point) for point in self.points()}
        return {point: result for point, result in found.items() if result is not None}

    def _run_if_free(self, point: Point, interrupts: Interrupts) -> bool:
        """Train a point that is neither finished nor in use by another process; returns whether it was trained here."""
        if self._result(point) is not None:
            return False
        try:
            with RunFolder(self._path(point)) as folder:
                if self._result(point) is not None:  # another process finished it before it released the lock
                    return False
                self._run(point, folder, interrupts)
        except InUseError:
            return False
        except DivergenceError as error:  # the record of the run has it: no other process trains this point again
            self._progress.finish()
            self._progress.say(f"{point} has failed: {error}")
        with RunFolder(self._folder, wait=True):
            result = self._update_best()
        if result.best is not None:
            shown = summarize_scores(result.metric, result.best.scores)
            self._progress.say(f"best of {len(result.points)} so far: {format_settings(result.best.settings)}: {shown}")
        return True

    def _run(self, point: Point, folder: RunFolder, interrupts: Interrupts) -> None:
        points = self.points()
        of_all = "" if self._sweep.trials else f" of {len(points)}"  # trials may sample a point again
        self._progress.say(f"point {points.index(point) + 1}{of_all}: {point}")
        run = point.run(self._base, folder.path)
        begin_run(folder, settings_record(run), run, origins={**self._origins, **point.origins()})
        if self._data is None or not self._data.fits(run):
            self._data = load_data(run, self._progress, self._data)
        run_seeds(self._data.for_run(run), folder, interrupts, self._progress)

    def _sample(self) -> bool:
        if self._trials is None:
            return False
        with RunFolder(self._folder, wait=True):
            found = self.results().items()
            return self._trials.sample({point: self._rank(result) for point, result in found})

    def _rank(self, point: PointResult) -> float:
        """Higher for a better point; -inf for one that has failed, or whose mean is undefined."""
        return rank_score(self._base.task.metric, UNDEFINED if point.mean is None else point.mean)

    def _update_best(self) -> SweepResult:
        """Link to the best finished point, delete the models of all others, and write the table."""
        points = sorted(self.results().values(), key=lambda each: (each.mean is None, -self._rank(each)))
        result = SweepResult(folder=self._folder, metric=self._base.task.metric, points=points)
        if result.best is not None:
            _replace_link(self._folder / "best", result.best.folder)
        for each in points:
            if each is not result.best and (each.folder / "model").is_dir():
                with suppress(InUseError), RunFolder(each.folder) as worse:  # one in use is left to its process
                    remove_folder(worse.model)
        write_table(result)
        return result

    def _path(self, point: Point) -> Path:
        return self._folder / "points" / point.name

    def _result(self, point: Point) -> PointResult | None:
        return read_point(self._path(point), dict(point.values))


def _replace_link(link: Path, folder: Path) -> None:
    """Make the symbolic link ``link`` point to ``folder``, atomically."""
    target = folder.relative_to(link.parent)
    if not link.is_symlink() or link.readlink() != target:
        write_file(link, lambda temporary: temporary.symlink_to(target))
