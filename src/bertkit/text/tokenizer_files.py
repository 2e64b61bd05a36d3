"""The files that every tokenizer folder has: ``tokenizer.json`` and ``tokenizer_config.json``.

A folder that ``write_tokenizer`` wrote also has ``checksums.json``; that of a model has them in ``bertkit.json``, and
folders of other programs have none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict

from bertkit.errors import data_error
from bertkit.storage.atomic import (
    explain_writing,
    make_folder,
    read_json,
    read_object,
    write_folder,
    write_json,
    write_text,
)
from bertkit.storage.checksums import check_files, read_checked, write_checksums

CONFIG = "tokenizer_config.json"
TOKENIZER = "tokenizer.json"

FILES = (TOKENIZER, CONFIG, "vocab.txt", "vocab.json", "merges.txt")
"""Every file that a tokenizer may write into its folder."""

CHECKSUMS = "checksums.json"
_RECORDS = (CHECKSUMS, "bertkit.json")
"""Files that may have the checksums of a tokenizer's files."""


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
    truncation: dict[str, object] | None
    padding: dict[str, object] | None


def read_config(folder: Path) -> Mapping[str, object]:
    """The ``tokenizer_config.json`` of a folder; empty if there is none."""
    return read_object(folder / CONFIG, missing_ok=True)


def read_lenient(file: Path) -> Mapping[str, object]:
    """The object in a JSON file; empty if the file is missing, or has something else than an object."""
    content = read_json(file) if file.is_file() else {}
    return content if isinstance(content, dict) else {}


def save_tokenizer(
    folder: Path | str, description: Description, config: Mapping[str, object], files: Mapping[str, str] | None = None
) -> None:
    """Write ``tokenizer.json``, further ``files`` (name -> text) and ``tokenizer_config.json`` into ``folder``."""
    folder = Path(folder)
    texts = {TOKENIZER: json.dumps(description, indent=1, ensure_ascii=False), **(files or {})}
    with explain_writing(folder):
        make_folder(folder)
        for name, text in texts.items():
            write_text(folder / name, text)
        write_json(folder / CONFIG, config)


def write_tokenizer(folder: Path, save: Callable[[Path], object]) -> None:
    """Let ``save`` fill the folder of a tokenizer; it is written with checksums, as a whole or not at all.

    A folder that is already there is replaced, with everything in it.
    """

    def fill(temporary: Path) -> None:
        save(temporary)
        write_checksums(temporary / CHECKSUMS, {"kind": "tokenizer"})

    write_folder(folder, fill)


def check_tokenizer(folder: Path) -> None:
    """Raise a data error if a tokenizer file in ``folder`` is not as it was written; without checksums, do nothing."""
    for file in (folder / name for name in _RECORDS):
        if file.is_file():
            record = read_checked(file)
            if not isinstance(record.get("files"), dict):
                raise data_error(f"{file} is damaged: it names no files.")
            check_files(file, record, FILES)
