"""The tasks of the paper with their files, and the settings that each is fine-tuned with at a scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bertkit.errors import data_error
from bertkit.reproduction.pretrainings import Settings
from bertkit.reproduction.scales import Scale
from bertkit.task_types import FileTask
from bertkit.tasks.conll2003 import conll2003
from bertkit.tasks.squad import v1, v2
from bertkit.tasks.swag import swag

_HELD_OUT = 0.1

_REPLACEMENTS: Mapping[str, tuple[str, ...]] = {
    v1.name: ("squadshifts-new_wiki-v1.1.json",),
    v2.name: ("squad-dev-half-v2.0.json",),
    swag.name: ("codah-train.csv", "codah-val.csv"),
}
"""Files of train and of dev that are used where the benchmark's own are missing. Without dev a tenth of train is held
out."""

_PUBLISHED: Mapping[str, Settings] = {
    v1.name: {"optimizer.lr": 5e-5, "epochs": 3, "batch_size": 32},
    v2.name: {"optimizer.lr": 5e-5, "epochs": 2, "batch_size": 48},
    swag.name: {"optimizer.lr": 2e-5, "epochs": 3, "batch_size": 16},
}
"""The paper's own settings, where it gives a single value (sections 4.2 to 4.4)."""


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A task with its files. ``settings`` are those of its fine-tuning, by path; ``note`` names replaced files."""

    name: str
    task: FileTask
    settings: Settings
    note: str = ""


def find_benchmark(task: FileTask, features: str | None, data: Path, scale: Scale) -> Benchmark:
    """``task`` on the files below ``data``.

    With ``features`` the layers of that name of a frozen encoder are the input of the task's network.
    """
    located, note = _locate_files(task.at(data / task.files.home))
    settings: dict[str, object] = {"task.max_length": scale.max_length}
    if task.name in (v1.name, v2.name):
        settings = {"task.max_length": scale.span_length, "task.stride": min(128, scale.span_length // 3)}
    elif task.name == conll2003.name:
        settings["task.context"] = scale.profile == "paper"  # context makes a sentence five times as long
    if features:
        settings |= {"task.features": features, "optimizer.lr": scale.baseline_lr}
    elif scale.profile == "paper":
        settings |= _PUBLISHED.get(task.name, {})
    return Benchmark(
        name=f"{task.name}:{features}" if features else task.name, task=located, settings=settings, note=note
    )


def _locate_files(task: FileTask) -> tuple[FileTask, str]:
    """The task with its own files, or with their replacements and a note that says so."""
    missing = [path for split in ("train", "dev") for path in task.files.missing(task.name, split)]
    if not missing:
        return task, ""
    replacements, folder = _REPLACEMENTS.get(task.name, ()), missing[0].parent
    if not replacements or not all((folder / file).exists() for file in replacements):
        alternative = f", nor {', '.join(replacements)} instead" if replacements else ""
        raise data_error(
            f"{missing[0]} does not exist{alternative}. Name the folder that holds {task.files.home}: --data DIR."
        )
    note = f"{task.name}: {', '.join(replacements)} instead of the benchmark's own files"
    found = task.with_files(
        **{split: [folder / file] for split, file in zip(("train", "dev"), replacements, strict=False)}
    )
    if len(replacements) > 1:
        return found, f"{note}."
    train = replace(found.files, splits={"train": found.files.splits["train"]})
    return replace(found, files=train, heldout=_HELD_OUT), f"{note}, a tenth of it held out as dev."
