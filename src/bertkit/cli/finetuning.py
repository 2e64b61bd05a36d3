"""The verbs that fine-tune: finetune and tune."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import bertkit
from bertkit.cli.output import show_json, show_lines, show_parts, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.options.finetuning import FinetuneOptions, TuneOptions
from bertkit.scores import format_score

if TYPE_CHECKING:  # it imports PyTorch
    from bertkit.api.task_choice import TaskEntry

_WIDTH, _INDENT = 80, "    "


def list_tasks(*, json: bool = False) -> None:
    """Show the tasks that bertkit knows by name, with their scores and files."""
    tasks = bertkit.list_tasks()
    show_json(tasks) if json else show_lines(line for task in tasks for line in _describe_task(task))


def _describe_task(task: TaskEntry) -> Iterator[str]:
    """The lines of a task: its name and metric, what it is about and its files."""
    yield f"{task.name:16}{task.metric}"
    for text in (task.about, f"files: {task.files}"):
        yield from textwrap.wrap(text, _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT)


def finetune(options: FinetuneOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Fine-tune a model, and show the scores of every seed."""
    result = bertkit.finetune(**vars(options))
    if json:
        show_json(result)
    else:
        seeds = [(each.seed, each.best_epoch, *each.scores.values()) for each in result.seeds]
        show_table(("seed", "epoch", *result.best.scores), seeds)
        spread = "" if result.sd is None else f", sd {format_score(result.sd)}"
        mean, best = format_score(result.mean), format_score(result.best.scores[result.metric])
        show_lines([f"{result.metric}: mean {mean}{spread}, best {best} (seed {result.best.seed})"])
        show_lines([result.verdict()] if result.baselines else [])
        show_parts(result.best.parts)
    verbosity.suggest("bertkit", "evaluate", options.output)


def tune(options: TuneOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Fine-tune with every configuration, and show them, the best first."""
    result = bertkit.tune(**vars(options))
    if json:
        show_json(result)
    else:
        show_table(result.header(), result.rows())
        show_lines([result.best.verdict] if result.best and result.best.verdict else [])
    verbosity.suggest("bertkit", "evaluate", Path(options.output) / "best")
