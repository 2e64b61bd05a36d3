"""The files that hold a byte-pair tokenizer, read and judged: ``tokenizer.json``, or a vocabulary and its merges."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bertkit.errors import data_error
from bertkit.storage.atomic import read_json, write_file
from bertkit.text.tokenizer_files import RULES

Pair = tuple[str, str]
"""The names of two files: pieces with their ids, and merges."""

HUGGING_FACE: Pair = ("vocab.json", "merges.txt")
OPENAI: Pair = ("encoder_bpe_40000.json", "vocab_40000.bpe")

_VERSION = "#version: 0.2"

Merges = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What is in a folder: pieces with their ids, merges in their order, and the ``rules`` that the ``file`` states.

    ``added`` are the pieces that are looked for before the rules cut. Two files that have no more than pieces and
    merges state neither.
    """

    file: Path
    vocabulary: Mapping[str, int]
    merges: Merges
    rules: Mapping[str, Any] = field(default_factory=dict)
    added: tuple[str, ...] = ()


def read_folder(folder: Path, model: str, pairs: Sequence[Pair]) -> Found:
    """The tokenizer in ``folder``, of which a ``model`` is in need; ``tokenizer.json`` is taken before two files."""
    if (folder / RULES).is_file():
        return _read_rules(folder / RULES, model)
    for pieces, merges in pairs:
        if (folder / pieces).is_file():
            vocabulary = _check_vocabulary(read_json(folder / pieces), folder / pieces)
            return Found(file=folder / pieces, vocabulary=vocabulary, merges=_read_merges(folder / merges))
    names = " or ".join(f"{pieces} with {merges}" for pieces, merges in pairs)
    raise data_error(f"no tokenizer of {model} at {folder}: it has neither {RULES} nor {names}.")


def write_files(folder: Path, description: Mapping[str, Any]) -> None:
    """Write ``tokenizer.json`` with this content, and its vocabulary and merges under Hugging Face's names."""
    vocabulary, merges = HUGGING_FACE
    model = description["model"]
    texts = {
        RULES: json.dumps(description, indent=1, ensure_ascii=False),
        vocabulary: json.dumps(model["vocab"], ensure_ascii=False),
        merges: "\n".join([_VERSION, *(" ".join(pair) for pair in model["merges"])]) + "\n",
    }
    for name, text in texts.items():
        write_file(folder / name, partial(_write_text, text))


def _write_text(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _read_rules(file: Path, name: str) -> Found:
    description = read_json(file)
    model = description.get("model") if isinstance(description, dict) else None
    if not isinstance(model, dict) or "merges" not in model:
        raise data_error(f'{file} is not a tokenizer of {name}: it has no "model" with merges.')
    added = {each["content"]: each["id"] for each in description.get("added_tokens", ())}
    return Found(
        file=file,
        vocabulary=_check_vocabulary({**model["vocab"], **added}, file),
        merges=[_split(pair, f"{file}, merge {place:,}") for place, pair in enumerate(model["merges"], 1)],
        rules={
            "normalizer": description.get("normalizer"),
            "pre_tokenizer": description.get("pre_tokenizer"),
            "end_of_word_suffix": model.get("end_of_word_suffix") or None,
        },
        added=tuple(added),
    )


def _check_vocabulary(pieces: Any, file: Path) -> dict[str, int]:
    if not isinstance(pieces, dict) or not all(isinstance(number, int) for number in pieces.values()):
        raise data_error(f"{file} is not a vocabulary: a JSON object of pieces with their ids.")
    return pieces


def _read_merges(file: Path) -> Merges:
    """Two pieces a line; the first line may tell the version."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise data_error(f"{file} cannot be read: {error}.") from error
    return [
        _split(line, f"{file}, line {number:,}")
        for number, line in enumerate(lines, 1)
        if line and not (number == 1 and line.startswith("#version"))
    ]


def _split(merge: Any, place: str) -> tuple[str, str]:
    """A merge as one string, or as two, as newer files have it."""
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if not isinstance(parts, list) or len(parts) != 2:
        raise data_error(f"{place}: {json.dumps(merge)} is not two pieces.")
    return parts[0], parts[1]
