"""The verbs as Python functions: the same names and arguments as on the command line.

What a command shows, its function returns. Paths may be text. ``progress`` is what the job says on stderr. Mistakes
raise BertkitError in one line.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertkit import lookup as names
from bertkit.api.benchmarks import glue_submit as glue_submit
from bertkit.api.benchmarks import glue_table as glue_table
from bertkit.api.benchmarks import squad_score as squad_score
from bertkit.api.options import given_settings
from bertkit.api.paths import AnyPath, existing, near
from bertkit.api.pretraining import pretrain as pretrain
from bertkit.api.reproduction import reproduce as reproduce
from bertkit.api.text import TokenView as TokenView
from bertkit.api.text import corpus_check as corpus_check
from bertkit.api.text import prepare as prepare
from bertkit.api.text import tokenizer_show as tokenizer_show
from bertkit.api.text import tokenizer_train as tokenizer_train
from bertkit.config import Setting, apply, origins, parse_settings, settings_of
from bertkit.errors import usage_error
from bertkit.evaluation.compare import Comparison
from bertkit.evaluation.evaluate import compare_models, evaluate_model, read_split
from bertkit.evaluation.report import Evaluation
from bertkit.finetuning.defaults import FinetuneProfile, finetuning_profile_settings
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import FinetuneResult
from bertkit.finetuning.run import finetune as run_finetuning
from bertkit.inference.fill import Filling
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.pipeline import load as load
from bertkit.inference.prediction_files import STREAM, answer_file
from bertkit.quick_start.run import QuickstartResult
from bertkit.quick_start.run import quickstart as run_quickstart
from bertkit.report.doctor import Diagnosis, examine
from bertkit.report.progress import Mode, Progress
from bertkit.report.tracking import replay
from bertkit.runs import read_run
from bertkit.sweeps.sweep import Sampler, Sweep, SweepResult, read_axes
from bertkit.sweeps.sweep import tune as run_sweep
from bertkit.task_types import FileTask, TextClassificationTask
from bertkit.task_types.user_tables import Kind, guess, holds_tables

_TABLES = (".conll", ".csv", ".tsv", ".json", ".jsonl", ".parquet", ".txt", ".gz")


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task on the shelf: what scores it, the files it expects, what it asks."""

    name: str
    metric: str
    files: str
    about: str


def quickstart(output: AnyPath = "quickstart", *, minutes: float = 10, progress: Mode = "auto") -> QuickstartResult:
    """Raw text to a fine-tuned model, with no input at all and no network."""
    with Progress(progress) as bar:
        return run_quickstart(Path(output), minutes=minutes, progress=bar)


def doctor() -> Diagnosis:
    """Device, precision, threads, memory and what is installed."""
    return examine()


def fill(model: AnyPath, text: str, *, top_k: int = 5) -> list[list[Filling]]:
    """For each ``[MASK]`` of the text, from left to right, the ``top_k`` likeliest words."""
    return load(model).fill(text, top_k)


def tasks() -> list[TaskEntry]:
    """The tasks on the shelf."""
    return [
        TaskEntry(name, task.metric, ", ".join(_file_names(task)), task.about)
        for name, task in names.values("tasks", FileTask).items()
    ]


def finetune(
    task: AnyPath | FileTask,
    *,
    model: AnyPath,
    output: AnyPath,
    data: AnyPath | None = None,
    train: Sequence[AnyPath] = (),
    dev: AnyPath | None = None,
    test: AnyPath | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    kind: Kind | None = None,
    class_weights: str | None = None,
    allow_rare_labels: bool = False,
    seeds: int = 1,
    first_seed: int = 0,
    profile: FinetuneProfile | None = None,
    epochs: int | None = None,
    lr: float | None = None,
    batch_size: int | None = None,
    limit: int | None = None,
    from_scratch: bool = False,
    reinit_layers: int = 0,
    layer_decay: float = 1.0,
    then: AnyPath | None = None,
    set: Sequence[str] = (),
    progress: Mode = "auto",
) -> FinetuneResult:
    """Train ``model`` for a task of the shelf, or on your own table, into ``output``.

    With ``then``, another task or table, that is the last one: the first goes into ``output/first``, with one seed.
    """
    files = {"train": train, "dev": [dev] if dev else [], "test": [test] if test else []}
    guessing = {"text": text, "pair": pair, "label": label, "kind": kind, "allow_rare_labels": allow_rare_labels}
    with Progress(progress) as bar:
        found = _choose(task, data, files, guessing, class_weights, bar)
        typed = [
            *given_settings(model=Path(model), output=Path(output), seeds=seeds, first_seed=first_seed, epochs=epochs),
            *given_settings(batch_size=batch_size, limit=limit, from_scratch=from_scratch, **{"optimizer.lr": lr}),
            *given_settings(reinit_layers=reinit_layers, layer_decay=layer_decay),
            *parse_settings(set),
        ]
        settings = [*_profiled(profile, found), *typed]
        run = apply(FinetuneRun(task=found, model=Path(model), output=Path(output)), settings)
        if then is not None:
            first = replace(run, output=run.output / "first", seeds=1)
            run_finetuning(first, bar, origins=origins(first, settings))
            last = _choose(then, data, {"train": (), "dev": (), "test": ()}, {}, None, bar)
            settings = [*_profiled(profile, last), *typed]
            run = replace(apply(replace(run, task=last), settings), model=first.output, from_scratch=False)
        return run_finetuning(run, bar, origins=origins(run, settings))


def tune(
    task: AnyPath | FileTask,
    *,
    model: AnyPath,
    output: AnyPath,
    data: AnyPath | None = None,
    train: Sequence[AnyPath] = (),
    dev: AnyPath | None = None,
    test: AnyPath | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    kind: Kind | None = None,
    class_weights: str | None = None,
    allow_rare_labels: bool = False,
    grid: Sequence[str] | Mapping[str, Sequence[Any]] = (),
    trials: int | None = None,
    sampler: Sampler = "tpe",
    seeds: int = 1,
    first_seed: int = 0,
    profile: FinetuneProfile | None = None,
    epochs: int | None = None,
    lr: float | None = None,
    batch_size: int | None = None,
    limit: int | None = None,
    from_scratch: bool = False,
    reinit_layers: int = 0,
    layer_decay: float = 1.0,
    set: Sequence[str] = (),
    progress: Mode = "auto",
) -> SweepResult:
    """Fine-tune at every point of ``grid`` (by default the paper's) and keep the best mean on dev.

    ``grid`` is ``{"lr": [5e-5, 3e-5]}``, or the words of the command line. With ``trials``, so many points are drawn
    from it, and it may have ranges.
    """
    files = {"train": train, "dev": [dev] if dev else [], "test": [test] if test else []}
    guessing = {"text": text, "pair": pair, "label": label, "kind": kind, "allow_rare_labels": allow_rare_labels}
    with Progress(progress) as bar:
        found = _choose(task, data, files, guessing, class_weights, bar)
        settings = [
            *_profiled(profile, found),
            *given_settings(model=Path(model), output=Path(output), seeds=seeds, first_seed=first_seed, epochs=epochs),
            *given_settings(batch_size=batch_size, limit=limit, from_scratch=from_scratch, **{"optimizer.lr": lr}),
            *given_settings(reinit_layers=reinit_layers, layer_decay=layer_decay),
            *parse_settings(set),
        ]
        run = apply(FinetuneRun(task=found, model=Path(model), output=Path(output)), settings)
        given = [name for name, value in {"epochs": epochs, "lr": lr, "batch_size": batch_size}.items() if value]
        axes = read_axes(grid, given=given, ranges=trials is not None)
        sweep = Sweep(base=run, axes=axes, trials=trials, sampler=sampler)
        return run_sweep(sweep, bar, origins=origins(run, settings))


def evaluate(
    run: AnyPath,
    *,
    data: AnyPath | None = None,
    split: str = "dev",
    on: str | None = None,
    output: AnyPath | None = None,
    ensemble: Sequence[AnyPath] = (),
    progress: Mode = "auto",
) -> Evaluation:
    """How good a fine-tuned model is on the files it was trained with, or on a folder or file ``data``.

    ``on`` names another task that wants the same answers, such as glue:ax for a model of glue:mnli. The report, a page
    and JSON, is written into the folder ``output``, by default ``evaluation-SPLIT`` in the run folder. The
    runs of ``ensemble`` answer together with ``run``.
    """
    model = load(run, *ensemble)
    task = model.task if on is None else _same_answers(_named(on), model.task)
    questions = read_split(task, None if data is None else Path(data), split)
    with Progress(progress) as bar:
        found = evaluate_model(model, questions, None if output is None else Path(output), bar)
        _say_cuts(bar, model)
    return found


def compare(
    first: AnyPath, second: AnyPath, data: AnyPath | None = None, *, split: str = "dev", progress: Mode = "auto"
) -> Comparison:
    """Whether one of two fine-tuned models is better than the other on the same examples, by more than chance.

    They are those of a split in the files that ``first`` was trained with, or in a folder or file ``data``.
    """
    with Progress(progress) as bar:
        return compare_models(load(first), load(second), None if data is None else Path(data), split, bar)


def predict(
    run: AnyPath, input: AnyPath, *, output: AnyPath, ensemble: Sequence[AnyPath] = (), progress: Mode = "auto"
) -> int:
    """Answers for every row of the file ``input`` into the file ``output``; returns how many.

    ``-`` is stdin or stdout. The same call goes on after an interruption. The runs of ``ensemble`` answer together with
    ``run``: the mean of what their heads say.
    """
    model = load(run, *ensemble)
    with Progress(progress) as bar:
        total, notes = (0, []) if Path(input) == STREAM else model.task.look_through(Path(input))
        for note in notes:
            bar.say(note)
        bar.start("predicting", total, "row")
        count = answer_file(model, Path(input), Path(output), bar.advance)
        _say_cuts(bar, model)
        return count


def track(run: AnyPath, *, follow: bool = False) -> int:
    """Replay the metrics of a run into ``run/tensorboard``; with ``follow``, until it has ended. Returns records."""
    return replay(Path(run), follow=follow)


def config_show(run: AnyPath) -> list[Setting]:
    """Every setting of a run, with where it came from."""
    record = read_run(Path(run))
    known = record.get("origins", {})
    found = settings_of(record["run"], "default")
    return [replace(setting, origin=known.get(setting.path, setting.origin)) for setting in found]


def _choose(
    task: AnyPath | FileTask,
    data: AnyPath | None,
    files: Mapping[str, Sequence[AnyPath]],
    guessing: Mapping[str, Any],
    class_weights: str | None,
    bar: Progress,
) -> FileTask:
    """The task that a user means, with its files; what was guessed and what should be known of it is said."""
    if isinstance(task, FileTask):
        found = task
    elif _is_table(task):
        dev, test = (Path(files[split][0]) if files[split] else None for split in ("dev", "test"))
        train = [task, *files["train"]]
        tables = list(map(Path, train)) if Path(task).is_dir() else existing(train)
        guessed = guess(tables, dev=dev, test=test, **guessing)
        bar.say(guessed.sentence)
        found = guessed.task
    else:
        found = _bound(_named(str(task)), data, files)
    if class_weights is not None:
        found = _weighted(found, class_weights)
    for note in found.notes():
        bar.say(note)
    return found


def _profiled(profile: FinetuneProfile | None, task: FileTask) -> list[Setting]:
    """What a profile decides for a fine-tuning on ``task``."""
    if profile is None:
        return []
    return [Setting(*each, f"--profile {profile}") for each in finetuning_profile_settings(profile, task).items()]


def _is_table(task: AnyPath) -> bool:
    """A file, something that is spelt like one, or a folder of tables that is no name on the shelf."""
    if Path(task).is_dir():
        return holds_tables(Path(task)) and str(task) not in names.values("tasks", FileTask)
    return isinstance(task, Path) or Path(task).is_file() or Path(task).suffix in _TABLES


def _named(task: str) -> FileTask:
    """A task of the shelf, or one of the user's own module."""
    module = task.partition(":")[0].partition(".")[0]
    if Path(task).is_dir() and task not in names.values("tasks", FileTask):
        raise usage_error(f"{task} is a folder without a train file, such as {task}/train.csv.")
    if "." in task and importlib.util.find_spec(module) is None:
        raise usage_error(f"no file at {task}, and no module named {module}.{near(Path(task))}")
    found: FileTask = names.find("tasks", task, FileTask)
    return found


def _say_cuts(bar: Progress, model: Pipeline) -> None:
    if model.num_truncated:
        bar.finish()
        bar.say(
            f"{model.num_truncated:,} examples were cut to {model.task.max_length} tokens, as in training. "
            f"{model.task.advise_on_cuts()} in its fine-tuning."
        )


def _same_answers(task: FileTask, trained: FileTask) -> FileTask:
    """``task`` if a model for ``trained`` gives answers of its kind."""
    if (task.shape, task.labels) != (trained.shape, trained.labels):
        raise usage_error(f"a model for {trained.name} does not give the answers of {task.name}.")
    return task


def _weighted(task: FileTask, weights: str) -> FileTask:
    if isinstance(task, TextClassificationTask):
        return task.weighted(weights)
    raise usage_error(f"{task.name} has no classes of texts to weigh.")


def _bound(task: FileTask, data: AnyPath | None, splits: Mapping[str, Sequence[AnyPath]]) -> FileTask:
    """A task of the shelf with its files where the user says they are."""
    if data is not None:
        task = task.at(Path(data))
    given = {split: files for split, files in splits.items() if files}
    return task.with_files(**given) if given else task


def _file_names(task: FileTask) -> list[str]:
    return sorted({name for split in task.files.splits.values() for name in split.files})
