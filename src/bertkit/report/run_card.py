"""What the model cards of pre-training and fine-tuning runs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertkit import config
from bertkit.report.card import Card, without_folders, write_card
from bertkit.runs import RunFolder
from bertkit.storage.atomic import write_file

_OWN = ("model", "output", "data")
"""Settings that say where and not how, and are in the command."""


def write_run_card(folder: RunFolder, card: Card) -> None:
    """The seal of the folder does not vouch for README.md: a person may go on writing there."""
    write_file(folder.model / "README.md", lambda path: path.write_text(write_card(card), encoding="utf-8"))


def source_row(file: Mapping[str, Any], prefix: str = "") -> tuple[str, int, str]:
    """The row of one data file: name, bytes and SHA-256."""
    return f"{prefix}{file['file']}", file["bytes"], file["sha256"]


def circumstances(record: Mapping[str, Any]) -> dict[str, Any]:
    """The command and the machine."""
    program, *words = record["command"]
    name = "bertkit" if Path(program).name in ("main.py", "__main__.py") else Path(program).name
    return {"command": [name, *words], "environment": record["environment"]}


def changed_settings(run: Any, default: Any) -> list[tuple[str, str]]:
    """Settings with another value than they would have had."""
    usual = {each.path: each.value for each in config.settings_of(config.to_json(default), "")}
    return [
        (each.path, without_folders(str(each.value)))
        for each in config.settings_of(config.to_json(run), "")
        if each.path not in _OWN and usual.get(each.path, ()) != each.value
    ]


def base_name(model: Path) -> str:
    """The name of the folder; of a run, whose model is in ``model/``, that of the run."""
    path = model.resolve()
    return path.parent.name if path.name == "model" else path.name
