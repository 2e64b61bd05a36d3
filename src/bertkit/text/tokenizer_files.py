"""The files that every tokenizer folder has: ``tokenizer.json`` and ``tokenizer_config.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TypedDict

from bertkit.storage.atomic import explain_writing, make_folder, read_object, write_file, write_json

CONFIG = "tokenizer_config.json"
TOKENIZER = "tokenizer.json"

FILES = (TOKENIZER, CONFIG, "vocab.txt", "vocab.json", "merges.txt")
"""Every file that a tokenizer may write into its folder."""


class ModelDescription(TypedDict, total=False):
    """The ``model`` of a ``tokenizer.json``: the vocabulary with its ids, and the merges of byte-pair encoding."""

    type: str
    vocab: dict[str, int]
    merges: list[list[str]]
    end_of_word_suffix: str | None


class AddedTokenDescription(TypedDict):
    """A token that is looked for in a text before the rules split it."""

    id: int
    content: str
    special: bool


class Description(TypedDict, total=False):
    """The parts of a ``tokenizer.json`` that are read here. A part that is null does nothing."""

    normalizer: dict[str, object] | None
    pre_tokenizer: dict[str, object] | None
    model: ModelDescription
    added_tokens: list[AddedTokenDescription]


def read_config(folder: Path) -> Mapping[str, object]:
    """The ``tokenizer_config.json`` of a folder; empty if there is none."""
    return read_object(folder / CONFIG) if (folder / CONFIG).is_file() else {}


def save_tokenizer(
    folder: Path, description: Description, config: Mapping[str, object], files: Mapping[str, str] | None = None
) -> None:
    """Write ``tokenizer.json``, further ``files`` (name -> text) and ``tokenizer_config.json`` into ``folder``."""
    texts = {TOKENIZER: json.dumps(description, indent=1, ensure_ascii=False), **(files or {})}
    with explain_writing(folder):
        make_folder(folder)
        for name, text in texts.items():
            write_file(folder / name, partial(_write_text, text))
        write_json(folder / CONFIG, config)


def _write_text(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
