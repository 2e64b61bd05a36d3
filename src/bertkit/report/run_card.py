"""Parts that the model cards of pre-training and fine-tuning runs share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertkit import config
from bertkit.report.card import Card, without_folders, write_card
from bertkit.runs import RunFolder
from bertkit.storage.atomic import write_text

_PATHS = ("model", "output", "data", "mix", "from_model", "also_evaluate")
"""Settings that are or name paths: the command has them."""


def write_run_card(folder: RunFolder, card: Card) -> None:
    """Write the card as README.md of the model. It has no checksum, so that it may be edited by hand."""
    write_text(folder.model / "README.md", write_card(card))


def source_row(file: Mapping[str, Any], prefix: str = "") -> tuple[str, int, str]:
    """The row of one data file: name, bytes and SHA-256."""
    return f"{prefix}{file['file']}", file["bytes"], file["sha256"]


def command_of(record: Mapping[str, Any]) -> list[str]:
    """The command that made a run, from its record."""
    program, *arguments = record["command"]
    name = "bertkit" if Path(program).name in ("main.py", "__main__.py") else Path(program).name
    return [name, *arguments]


def changed_settings(run: object, default: object) -> list[tuple[str, str]]:
    """Paths and values of the settings in which ``run`` differs from ``default``."""
    defaults = {each.path: each.value for each in config.settings_of(config.to_json(default), "")}
    return [
        (each.path, without_folders(str(each.value)))
        for each in config.settings_of(config.to_json(run), "")
        if each.path.partition(".")[0] not in _PATHS and defaults.get(each.path, ()) != each.value
    ]


def base_name(model: Path) -> str:
    """The name of a model folder; for ``model/`` of a run folder, the name of the run."""
    path = model.resolve()
    return path.parent.name if path.name == "model" else path.name
