"""A model card: README.md of a model folder in Hugging Face's format, with data, settings and scores."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.config.records import to_plain
from bertkit.config.settings import settings_of
from bertkit.escaping import printable, to_json, to_markdown
from bertkit.report.tables import markdown_table
from bertkit.runs import RunFolder, find_named_folder
from bertkit.scores import is_defined
from bertkit.storage.atomic import write_text

Row = Sequence[object]

_PATHS = ("model", "output", "data", "mix", "from_model", "also_evaluate")
"""Settings that are or name paths: the command has them."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """The content of a model card. ``pipeline_tag`` is one of Hugging Face or empty.

    ``scores`` are rows under ``score_columns``, and ``values`` the scores of the saved model by name; an undefined one
    is left out of the header. ``data`` has one row per file: name, bytes and SHA-256. ``command`` is written without
    the folders of absolute paths. ``base`` is the name of the model that was fine-tuned.
    """

    title: str
    about: str
    pipeline_tag: str
    score_columns: Sequence[str]
    scores: Sequence[Row]
    values: Mapping[str, float]
    data: Sequence[Row]
    command: Sequence[str]
    settings: Sequence[Row]
    environment: Mapping[str, object]
    limits: Sequence[str]
    base: str = ""


def write_card(card: Card) -> str:
    """The card as Markdown with a header in YAML."""
    command = printable(shlex.join(without_folders(word) for word in card.command).replace("\n", " "))
    parts = [
        f"---\n{_header(card)}---\n",
        f"# {to_markdown(card.title)}\n",
        "\n\n".join(map(to_markdown, card.about.split("\n\n"))) + "\n",
        "## Scores\n",
        markdown_table(card.score_columns, card.scores) if card.scores else "None were measured.\n",
        "## Data\n",
        markdown_table(("file", "bytes", "SHA-256"), card.data),
        "## How it was made\n",
        f"```console\n$ {command}\n```\n",
        "Settings that are not the defaults; `run.json` of the run has all.\n" if card.settings else "",
        markdown_table(("setting", "value"), card.settings) if card.settings else "All settings are the defaults.\n",
        markdown_table(("made with", ""), list(card.environment.items())),
        "## Limits\n",
        "".join(f"- {to_markdown(limit)}\n" for limit in card.limits),
    ]
    return "\n".join(part for part in parts if part)


def without_folders(word: str) -> str:
    """Replace an absolute path, which describes the machine and not the model, by its last part.

    It may be between equals signs, as in ``--mix=/home/me/books=0.25``.
    """
    return "=".join(Path(part).name if Path(part).is_absolute() else part for part in word.split("="))


def _header(card: Card) -> str:
    """The YAML header. Values are written as JSON, which is valid YAML, so no text of the user can break it."""
    fields: dict[str, object] = {"library_name": "transformers", "tags": ["bert", "bertkit"]}
    if card.pipeline_tag:
        fields["pipeline_tag"] = card.pipeline_tag
    if card.base:
        fields["base_model"] = card.base
    if values := {name: value for name, value in card.values.items() if is_defined(value)}:
        fields["metrics"] = list(values)
        fields["model-index"] = [{"name": card.title, "results": [_model_index(card, values)]}]
    return "".join(f"{name}: {to_json(value)}\n" for name, value in fields.items())


def _model_index(card: Card, values: Mapping[str, float]) -> dict[str, object]:
    return {
        "task": {"type": card.pipeline_tag or "other"},
        "dataset": {"name": card.title, "type": card.title},
        "metrics": [{"type": name, "value": _round(value)} for name, value in values.items()],
    }


def _round(value: float) -> float:
    """Six decimals, and of a number below 1 six digits."""
    return round(value, 6) if abs(value) >= 1 else float(f"{value:.6g}")


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
    defaults = {each.path: each.value for each in settings_of(to_plain(default), "")}
    return [
        (each.path, without_folders(str(each.value)))
        for each in settings_of(to_plain(run), "")
        if each.path.partition(".")[0] not in _PATHS and defaults.get(each.path, ()) != each.value
    ]


def base_name(model: Path) -> str:
    """The name of a model folder; for ``model/`` of a run folder, the name of the run."""
    return find_named_folder(model.resolve()).name
