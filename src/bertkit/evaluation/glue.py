"""GLUE over several runs: a row of the paper's Table 1 with its average, and the files that GLUE's server scores."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from bertkit.contracts import Example
from bertkit.errors import data_error, usage_error
from bertkit.finetuning.results import RESULTS, read_results
from bertkit.inference.pipeline import Pipeline, load
from bertkit.report.progress import Progress
from bertkit.results import Result
from bertkit.runs import read_run
from bertkit.scores import summarize_scores
from bertkit.storage.atomic import write_text
from bertkit.storage.outputs import open_output_folder
from bertkit.task_types import FileTask, TextTask
from bertkit.tasks.glue import SUBMISSION, TABLE, GlueColumn, Submitted


@dataclass(frozen=True, kw_only=True)
class GlueScore:
    """One column of the table: ``best`` is the score of the seed that is best on dev, ``mean`` is over all seeds.

    ``dev_limit`` is the number of dev examples of a run that evaluated the first of them alone, which is no score of
    GLUE.
    """

    column: str
    score: str
    best: float
    mean: float
    sd: float | None
    seeds: int
    run: Path
    dev_limit: int | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class GlueTable(Result):
    """``best`` and ``mean`` are averages over the paper's nine columns; None if some are ``missing``."""

    scores: list[GlueScore]
    best: float | None
    mean: float | None
    missing: list[str]


@dataclass(frozen=True, kw_only=True, repr=False)
class GlueSubmission(Result):
    """``rows`` counts the rows of every file that was written; ``missing`` says why the others were not."""

    folder: Path
    rows: dict[str, int]
    missing: dict[str, str]


def tabulate(runs: Sequence[Path]) -> GlueTable:
    """The dev scores of runs of GLUE's tasks, one run per task, in the order of the paper's columns.

    The average is computed as the paper does, which its own rows confirm: the mean of the columns without WNLI, where
    MNLI matched and mismatched are two columns.
    """
    by_task = _by_task((_task_of(run), run) for run in runs)
    scores = {column.name: _score(column, by_task) for column in TABLE}
    found = [score for score in scores.values() if score is not None]
    missing = [column.name for column in TABLE if column.counts and scores[column.name] is None]
    counted = [score for column in TABLE if column.counts and (score := scores[column.name]) is not None]
    return GlueTable(
        scores=found,
        best=None if missing else statistics.fmean(score.best for score in counted),
        mean=None if missing else statistics.fmean(score.mean for score in counted),
        missing=missing,
    )


def submit(runs: Sequence[Path], output: Path, progress: Progress, *, data: Path | None = None) -> GlueSubmission:
    """Predict the test files of the runs' tasks, and write them to ``output`` in the format of GLUE's server.

    ``data`` is the folder that holds ``CoLA``, ``SST-2`` and the others; without it every run reads the files that it
    was trained with. A run of MNLI also predicts the diagnostic set.
    """
    models = {run: load(run) for run in runs}
    by_task = _by_task((models[run].task.name, run) for run in runs)
    rows: dict[str, int] = {}
    missing: dict[str, str] = {}
    for entry in SUBMISSION:
        run = by_task.get(entry.fine_tuned_on.name)
        if run is None:
            missing[entry.file] = f"no run of {entry.fine_tuned_on.name} was given"
            continue
        model = copy(models[run])  # without the weights: those of nine models need not be in memory together
        task = _with_files(entry, model.task, data)
        if absent := task.files.missing(task.name, entry.split):
            missing[entry.file] = f"{absent[0]} does not exist"
            continue
        open_output_folder(output, ())  # before the predictions, which may take hours
        rows[entry.file] = _write_predictions(model, task.examples(entry.split), output / entry.file, progress)
    if not rows:
        raise data_error(
            "no file of the submission can be written: " + "; ".join(dict.fromkeys(missing.values())) + "."
        )
    return GlueSubmission(folder=output, rows=rows, missing=missing)


def _task_of(run: Path) -> str:
    record = read_run(run)
    if record["kind"] != "finetune":
        raise usage_error(f"{run} is a run of bertkit {record['kind']}. Give runs of bertkit finetune, or SWEEP/best.")
    return str(record["run"]["task"]["name"])


def _by_task(runs: Iterator[tuple[str, Path]]) -> dict[str, Path]:
    """The runs by task name; raises a usage error for a task that is not GLUE's, and for two runs of one task."""
    found: dict[str, Path] = {}
    known = dict.fromkeys(column.task.name for column in TABLE)
    for name, run in runs:
        if name not in known:
            raise usage_error(f"{run} is a run of {name}, which is not one of GLUE's tasks: {', '.join(known)}.")
        if name in found:
            raise usage_error(f"{found[name]} and {run} are both runs of {name}. Give one of them.")
        found[name] = run
    return found


def _score(column: GlueColumn, runs: Mapping[str, Path]) -> GlueScore | None:
    """One column from the ``results.json`` of its run; None without such a run, or without that score in it."""
    run = runs.get(column.task.name)
    if run is None:
        return None
    if not (run / RESULTS).exists():
        raise usage_error(f"{run} has no results yet. Repeat its command: it continues where it stopped.")
    result = read_results(run)
    values = [seed.scores[column.score] for seed in result.seeds if column.score in seed.scores]
    if not values:
        return None
    summary = summarize_scores(column.score, values)
    return GlueScore(
        column=column.name,
        score=column.score,
        best=result.best.scores[column.score],
        mean=summary.mean,
        sd=summary.sd,
        seeds=summary.count,
        run=run,
        dev_limit=read_run(run)["run"].get("dev_limit"),
    )


def _with_files(entry: Submitted, trained: FileTask, data: Path | None) -> FileTask:
    """The task whose test set is predicted; its files are in ``data``, or in the folder that holds those of the run."""
    task = trained if entry.task is entry.fine_tuned_on else entry.task
    folder = Path(entry.task.files.home).name
    if data is not None:
        return task.at(data / folder)
    return task if trained.files.folder is None or task is trained else task.at(trained.files.folder.parent / folder)


def _write_predictions(model: Pipeline, examples: Sequence[Example], path: Path, progress: Progress) -> int:
    task = model.task
    assert isinstance(task, TextTask), "every task of GLUE is on texts"
    progress.start(path.name, len(examples), "row")
    lines = ["index\tprediction\n"]
    for example, prediction in zip(examples, model.stream(examples), strict=True):
        lines.append(f"{example.id}\t{task.spell(prediction)}\n")
        progress.advance(len(lines) - 1)
    progress.finish()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(lines))
    return len(lines) - 1
