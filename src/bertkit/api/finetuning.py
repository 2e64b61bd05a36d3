"""The verbs that fine-tune: finetune, and tune for a search over settings."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from pathlib import Path

from bertkit.api.cluster import run_on_cluster
from bertkit.api.paths import optional_path
from bertkit.api.settings import given_settings
from bertkit.api.task_choice import choose_task, refuse_unused
from bertkit.api.verb import verb
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.config.settings import Setting, apply, origins, parse_settings, refuse_without_effect
from bertkit.errors import BertkitError, usage_error
from bertkit.finetuning.defaults import SMALL_MODELS, finetuning_profile_settings, is_small, small_model_settings
from bertkit.finetuning.record import NEEDS_TEACHER, FinetuneRun
from bertkit.finetuning.results import FinetuneResult
from bertkit.finetuning.run import finetune as run_finetuning
from bertkit.finetuning.starting_point import trained_task
from bertkit.options.finetuning import FinetuneOptions, TaskTrainingOptions, TuneOptions
from bertkit.report.progress import Progress
from bertkit.sweeps.results import SweepResult
from bertkit.sweeps.search_space import fit_ranges, read_axes, refuse_unread
from bertkit.sweeps.sweep import Sweep
from bertkit.sweeps.sweep import tune as run_sweep
from bertkit.task_types import FileTask, TextClassificationTask

_OF_FIRST = ("limit", "teacher", *NEEDS_TEACHER)
"""Settings for the examples of the first training, which the one on the task of ``--then`` does not have."""


@verb(FinetuneOptions)
def finetune(options: FinetuneOptions) -> FinetuneResult:
    """The scores of each seed, their ``mean``, ``sd`` and ``best``, and the run's ``folder``."""
    refuse_unused(options, then=options.then)
    with Progress(options.progress) as bar:
        model = ModelFolder.open(options.model)  # before the table, which may be large, is read
        task = choose_task(options, bar)
        run, settings = _plan(options, task, model)
        refuse_without_effect(run, parse_settings(options.set))
        _say_notes(run, bar)
        _say_measured(settings, bar)
        if options.then is not None:
            task = _choose_next(options, model, bar)  # before the first training, which may take long
            first = replace(run, output=run.output / "first", seeds=1)
            run_finetuning(first, bar, origins=origins(first, settings), model=model)
            model = ModelFolder.open(first.output)
            run, settings = _plan(options, task, model, without=_OF_FIRST)
            run = replace(run, model=first.output, from_scratch=False, reinit_layers=0)
            _say_measured(settings, bar)
        return run_finetuning(run, bar, origins=origins(run, settings), model=model)


def _choose_next(options: FinetuneOptions, model: ModelFolder, bar: Progress) -> FileTask:
    """The task of ``--then``; a setting that it does not have is a usage error."""
    assert options.then is not None
    then = TaskTrainingOptions(
        options.then, model=options.model, output=options.output, data=options.data, encoding=options.encoding
    )
    task = choose_task(then, bar)
    try:
        run, _ = _plan(options, task, model, without=_OF_FIRST)
    except BertkitError as error:
        raise usage_error(f"for the task of --then, {task.name}: {error}") from error
    _say_notes(run, bar)
    return task


@verb(TuneOptions)
def tune(options: TuneOptions) -> SweepResult:
    """``points``, the best first, with ``settings``, ``scores``, ``mean``, ``sd`` and ``best`` each; and ``best``."""
    refuse_unused(options)
    if options.sampler != "tpe" and options.trials is None:
        raise usage_error("--sampler needs --trials N: without it every configuration of the grid is tried.")
    if options.engine == "ray":
        run_on_cluster(tune, options)
    with Progress(options.progress) as bar:
        model = ModelFolder.open(options.model)  # before the table, which may be large, is read
        task = choose_task(options, bar)
        given = [each.path for each in (*_given_settings(options), *parse_settings(options.set))]
        small = not options.grid and options.profile is None and is_small(model)
        measured = small_model_settings(model, task, len(task.examples("train")[: options.limit])) if small else {}
        axes = read_axes(options.grid, given=given, measured=measured, ranges=options.trials is not None)
        varied = [axis.path for axis in axes]
        run, settings = _plan(options, task, model, varied=varied)
        refuse_unread(run, axes, parse_settings(options.set))
        _say_notes(run, bar)
        _say_measured(settings, bar)
        sweep = Sweep(base=run, axes=fit_ranges(axes, run), trials=options.trials, sampler=options.sampler)
        return run_sweep(sweep, bar, origins=origins(run, settings))


def _new_run(options: TaskTrainingOptions, task: FileTask) -> FinetuneRun:
    return FinetuneRun(task=task, model=Path(options.model), output=Path(options.output))


def _plan(
    options: TaskTrainingOptions,
    task: FileTask,
    model: ModelFolder,
    *,
    varied: Collection[str] = (),
    without: Collection[str] = (),
) -> tuple[FinetuneRun, list[Setting]]:
    """The run with all settings, and the settings."""
    settings = _list_settings(options, task, model, varied=varied, without=without)
    return apply(_new_run(options, task), settings), settings


def _list_settings(
    options: TaskTrainingOptions,
    task: FileTask,
    model: ModelFolder,
    *,
    varied: Collection[str],
    without: Collection[str],
) -> list[Setting]:
    """The settings of the profile, or of small models without one; then those of the options, which win.

    Before all of them are those that the model requires. Options for the settings ``without`` are ignored.
    """
    fitting = _fit_to_model(task, model)
    further = parse_settings(options.set)
    if named := [each.path for each in further if each.path in ("model", "output")]:
        raise usage_error(f"--set {named[0]}: the {named[0]} is given by --{named[0]}.")
    given = [each for each in (*_given_settings(options), *further) if each.path not in without]
    if options.profile is not None:
        published = finetuning_profile_settings(options.profile, task).items()
        return [*fitting, *(Setting(path, value, f"--profile {options.profile}") for path, value in published), *given]
    if not is_small(model):
        return [*fitting, *given]
    run = apply(_new_run(options, task), [*fitting, *given])
    chosen = {*varied, *(each.path for each in given)}
    if "task.pooling" in chosen:
        chosen.add("task.pair_head")
    found = small_model_settings(model, run.task, len(task.examples("train")[: run.limit])).items()
    measured = [Setting(path, value, SMALL_MODELS) for path, value in found if path not in chosen]
    return [*fitting, *measured, *given]


def _say_notes(run: FinetuneRun, bar: Progress) -> None:
    """Show what is notable about the examples that the run uses."""
    for note in run.task.reader.notes(run.limit, run.dev_limit):
        bar.say(note)


def _say_measured(settings: Sequence[Setting], bar: Progress) -> None:
    """Show the settings for small models, if there are any."""
    if measured := [f"{each.path}={each.value}" for each in settings if each.origin == SMALL_MODELS]:
        bar.say(f"a small model: {', '.join(measured)} (--profile bert has the published settings)")


def _fit_to_model(task: FileTask, model: ModelFolder) -> list[Setting]:
    """Rows no longer than the model reads, and the labels in the order of the heads that it was fine-tuned with.

    F1 stays that of the class that is the second of the task.
    """
    longest = model.positions or task.max_length
    fitting = [Setting("task.max_length", longest, "--model")] if longest < task.max_length else []
    trained = trained_task(model)
    if type(trained) is type(task):
        ours, theirs = (getattr(each, "labels", ()) for each in (task, trained))
        if ours != theirs and sorted(ours) == sorted(theirs):
            fitting.append(Setting("task.labels", theirs, "--model"))
            if isinstance(task, TextClassificationTask) and len(ours) == 2:
                fitting.append(Setting("task.positive", task.positive_class, "--model"))
            if spellings := getattr(task, "spellings", ()):
                reordered = tuple(spellings[ours.index(label)] for label in theirs)
                fitting.append(Setting("task.spellings", reordered, "--model"))
    return fitting


def _given_settings(options: TaskTrainingOptions) -> list[Setting]:
    """The options that differ from their defaults."""
    defaults = {each.name: each.default for each in fields(options)}
    given = given_settings(
        model=Path(options.model),
        output=Path(options.output),
        seeds=options.seeds,
        first_seed=options.first_seed,
        epochs=options.epochs,
        batch_size=options.batch_size,
        precision=options.precision,
        limit=options.limit,
        from_scratch=options.from_scratch,
        reinit_layers=options.reinit_layers,
        layer_decay=options.layer_decay,
        teacher=optional_path(options.teacher),
        unlabelled=optional_path(options.unlabelled),
        **{"optimizer.lr": options.lr},
    )
    without_baseline = [Setting("baseline", False, "--no-baseline")] if options.no_baseline else []
    return [each for each in given if each.value != defaults.get(each.path)] + without_baseline
