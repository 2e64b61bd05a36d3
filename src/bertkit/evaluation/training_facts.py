"""How an evaluated model was trained, from the record of its run: seeds, epochs, settings, date and command."""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.config.settings import settings_of
from bertkit.escaping import to_html
from bertkit.evaluation.html_tables import html_table
from bertkit.finetuning.results import FinetuneResult, read_finetuning_record, read_finished_run
from bertkit.report.card import command_of
from bertkit.scores import format_score

_ALWAYS_SHOWN = (
    "model",
    "epochs",
    "batch_size",
    "optimizer.lr",
    "limit",
    "task.max_length",
    "precision",
    "from_scratch",
)
_NEVER_SHOWN = ("output", "seeds", "first_seed", "task.files.", "task.name", "task.labels")
"""Beginnings of settings that are elsewhere on the page, or paths of files."""


@dataclass(frozen=True, kw_only=True)
class TrainingFacts:
    """The finished fine-tuning of a model; ``settings`` are those that matter or that were given, with their origin.

    ``curves`` is the run's SVG of the scores after every epoch, empty if it is missing.
    """

    result: FinetuneResult
    curves: bytes
    settings: Sequence[tuple[str, str, str]]
    command: str
    date: str
    machine: str


def read_training_facts(model: Path) -> TrainingFacts | None:
    """The training of the ``model`` of a run folder; None for a model outside of a finished run."""
    record, result = read_finetuning_record(model), read_finished_run(model)
    if not record or result is None:
        return None
    curves = model.parent / "epochs.svg"
    environment, device = record.get("environment", {}), record.get("device", {})
    return TrainingFacts(
        result=result,
        curves=curves.read_bytes() if curves.is_file() else b"",
        settings=list(_list_settings(record)),
        command=shlex.join(command_of(record)),
        date=str(environment.get("time", ""))[:16].replace("T", " "),
        machine=", ".join(
            filter(None, [device.get("name"), environment.get("machine"), f"torch {environment.get('torch', '')}"])
        ),
    )


def _list_settings(record: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    origins = record.get("origins", {})
    for setting in settings_of(record["run"], "default"):
        origin = origins.get(setting.path, "default")
        is_shown = setting.path in _ALWAYS_SHOWN or origin != "default"
        if is_shown and not setting.path.startswith(_NEVER_SHOWN):
            yield setting.path, str(setting.value), origin


def render_seeds(facts: TrainingFacts) -> Iterator[str]:
    """The scores of every seed, and those after every epoch as the run has drawn them."""
    result, metric = facts.result, facts.result.metric
    yield "<h2>Seeds</h2>"
    rows = [(f"seed {each.seed}", each.best_epoch, *each.scores.values()) for each in result.seeds]
    sd = "" if result.sd is None else f", standard deviation {format_score(result.sd)}"
    mean = f"{metric}: mean {format_score(result.mean)}{sd}"
    caption = f"Dev scores of the training. {mean}. This page evaluates the best seed."
    yield html_table(caption, ("", "epoch", *result.best.scores), rows)
    if facts.curves:
        image = base64.b64encode(facts.curves).decode()
        yield f'<img alt="{to_html(metric)} on dev after every epoch" src="data:image/svg+xml;base64,{image}">'


def render_settings(facts: TrainingFacts) -> Iterator[str]:
    """The settings, where and when the model was trained, and the command."""
    yield "<h2>Training</h2>"
    yield f"<p>Trained {to_html(facts.date)} on {to_html(facts.machine)}.</p>"
    yield f"<pre>{to_html(f'$ {facts.command}')}</pre>"
    yield html_table("Settings that were given, and the main ones.", ("setting", "value", "from"), facts.settings)
