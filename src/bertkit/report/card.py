"""A model card: README.md of a model folder, in Hugging Face's format, with all that was done to make the model."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.report.tables import markdown_table

Row = Sequence[object]


@dataclass(frozen=True, kw_only=True)
class Card:
    """What a card says. ``kind`` is a pipeline of Hugging Face, empty for none; ``base`` the model it began as.

    ``scores`` are rows under ``score_columns``, and ``values`` those of the saved model by name. ``data`` are rows of a
    file, its bytes and its SHA-256. ``command`` is as typed, and is written without the folders of absolute paths.
    """

    title: str
    about: str
    kind: str
    score_columns: Sequence[str]
    scores: Sequence[Row]
    values: Mapping[str, float]
    data: Sequence[Row]
    command: Sequence[str]
    settings: Sequence[Row]
    environment: Mapping[str, Any]
    limits: Sequence[str]
    base: str = ""


def write_card(card: Card) -> str:
    """The card as Markdown with a header in YAML."""
    parts = [
        f"---\n{_header(card)}---\n",
        f"# {card.title}\n",
        f"{card.about}\n",
        "## Scores\n",
        markdown_table(card.score_columns, card.scores) if card.scores else "None were measured.\n",
        "## Data\n",
        markdown_table(("file", "bytes", "SHA-256"), card.data),
        "## How it was made\n",
        f"```console\n$ {_spell_command(card.command)}\n```\n",
        "Settings that are not the defaults; `run.json` of the run has all.\n" if card.settings else "",
        markdown_table(("setting", "value"), card.settings) if card.settings else "All settings are the defaults.\n",
        markdown_table(("made with", ""), list(card.environment.items())),
        "## Limits\n",
        "".join(f"- {limit}\n" for limit in card.limits),
    ]
    return "\n".join(part for part in parts if part)


def without_folders(word: str) -> str:
    """A path that begins at the root says more of a machine than of a model: only its last part is kept."""
    option, equals, value = word.rpartition("=")
    return f"{option}{equals}{Path(value).name}" if Path(value).is_absolute() else word


def _spell_command(words: Sequence[str]) -> str:
    return shlex.join(without_folders(word) for word in words).replace("\n", " ")


def _header(card: Card) -> str:
    """YAML; what JSON writes on one line is YAML too, so no text of the user can break it."""
    fields: dict[str, Any] = {"library_name": "transformers", "tags": ["bert", "bertkit"]}
    if card.kind:
        fields["pipeline_tag"] = card.kind
    if card.base:
        fields["base_model"] = card.base
    if card.values:
        fields["metrics"] = list(card.values)
        fields["model-index"] = [{"name": card.title, "results": [_index(card)]}]
    return "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in fields.items())


def _index(card: Card) -> dict[str, Any]:
    return {
        "task": {"type": card.kind or "other"},
        "dataset": {"name": card.title, "type": card.title},
        "metrics": [{"type": name, "value": round(value, 6)} for name, value in card.values.items()],
    }
