"""The tasks of the paper on the files that are there, and how they are asked at a scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bertkit.errors import data_error
from bertkit.reproduction.scales import Scale
from bertkit.task_types import FileTask
from bertkit.tasks.conll2003 import conll2003
from bertkit.tasks.glue import cola, mnli, mrpc, qnli, qqp, rte, sst2, stsb
from bertkit.tasks.squad import v1, v2
from bertkit.tasks.swag import swag

_HELD_OUT = 0.1

_STAND_INS: Mapping[str, tuple[str, ...]] = {
    "squad1": ("squadshifts-new_wiki-v1.1.json",),
    "squad2": ("squad-dev-half-v2.0.json",),
    "swag": ("codah-train.csv", "codah-val.csv"),
}
"""The file of train, and of dev, that is taken where the benchmark's own are not there. Without dev a tenth is held
out."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A task with its files. ``settings`` are those of its fine-tuning, by path; ``files`` says what stands in."""

    name: str
    task: FileTask
    settings: Mapping[str, Any] = field(default_factory=dict)
    files: str = ""


def ask(name: str, data: Path, scale: Scale) -> Question:
    """The question of this name, such as ``mnli`` or ``ner:last``, on the files below ``data``."""
    base, _, features = name.partition(":")
    kind = _TASKS[base]
    task, files = _with_files(base, kind.at(data / kind.files.home))
    settings: dict[str, Any] = {"task.max_length": scale.max_length}
    if base in ("squad1", "squad2"):
        settings = {"task.max_length": scale.span_length, "task.stride": min(128, scale.span_length // 3)}
    elif base == "ner":
        settings["task.context"] = scale.profile == "paper"  # it makes a sentence five times as long
    if features:
        settings |= {"task.features": features, "optimizer.lr": scale.rival_lr}
    elif scale.profile == "paper":
        settings |= _PUBLISHED.get(base, {})
    return Question(name=name, task=task, settings=settings, files=files)


_TASKS: Mapping[str, FileTask] = {
    "mnli": mnli,
    "qqp": qqp,
    "qnli": qnli,
    "sst2": sst2,
    "cola": cola,
    "stsb": stsb,
    "mrpc": mrpc,
    "rte": rte,
    "squad1": v1,
    "squad2": v2,
    "swag": swag,
    "ner": conll2003,
}

_PUBLISHED: Mapping[str, Mapping[str, Any]] = {
    "squad1": {"optimizer.lr": 5e-5, "epochs": 3, "batch_size": 32},
    "squad2": {"optimizer.lr": 5e-5, "epochs": 2, "batch_size": 48},
    "swag": {"optimizer.lr": 2e-5, "epochs": 3, "batch_size": 16},
}
"""The paper's own settings, where it names one only (sections 4.2 to 4.4)."""


def _with_files(name: str, task: FileTask) -> tuple[FileTask, str]:
    """The task with its own files, or with those that stand in for them."""
    missing = [path for split in ("train", "dev") for path in task.files.missing(task.name, split)]
    if not missing:
        return task, ""
    stand_ins, folder = _STAND_INS.get(name, ()), missing[0].parent
    if not stand_ins or not all((folder / file).exists() for file in stand_ins):
        instead = f", nor {', '.join(stand_ins)} instead" if stand_ins else ""
        raise data_error(
            f"{missing[0]} does not exist{instead}. Name the folder that holds {task.files.home}: --data DIR."
        )
    files = f"{', '.join(stand_ins)} instead of the benchmark's own files"
    found = task.with_files(
        **{split: [folder / file] for split, file in zip(("train", "dev"), stand_ins, strict=False)}
    )
    if len(stand_ins) > 1:
        return found, files
    train = replace(found.files, splits={"train": found.files.splits["train"]})
    return replace(found, files=train, heldout=_HELD_OUT), f"{files}, a tenth of it held out as dev"
