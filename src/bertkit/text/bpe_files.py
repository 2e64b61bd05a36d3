"""Reading the files of a byte-pair tokenizer: ``tokenizer.json``, or a vocabulary with its merges, and checking
them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertkit.errors import data_error
from bertkit.storage.atomic import read_json
from bertkit.text.added_tokens import AddedTokens, read_added_tokens
from bertkit.text.tokenizer_files import TOKENIZER, Description, read_config

FilePair = tuple[str, str]
"""The names of two files: subwords with their ids, and merges."""

HUGGING_FACE: FilePair = ("vocab.json", "merges.txt")
OPENAI: FilePair = ("encoder_bpe_40000.json", "vocab_40000.bpe")

_VERSION = "#version: 0.2"

_UNREAD = ("ignore_merges", "byte_fallback", "dropout", "continuing_subword_prefix")
"""Settings of a ``tokenizer.json``'s model that change the ids. Tokenizers of RoBERTa and GPT have none of them."""

Merge = tuple[str, str]
"""Two subwords that become one."""


@dataclass(frozen=True, kw_only=True)
class BpeFiles:
    """The content of a folder: subwords with their ids, merges in order of priority, and the rules of splitting.

    ``rules`` come from ``tokenizer.json``; a vocabulary with merges has none. ``added`` are the tokens that are looked
    for before the rules split a text. ``file`` names the source in errors.
    """

    file: Path
    vocabulary: Mapping[str, int]
    merges: list[Merge]
    rules: Mapping[str, object] = field(default_factory=dict)
    added: AddedTokens = field(default_factory=AddedTokens)


def read_folder(folder: Path, model: str, pairs: Sequence[FilePair]) -> BpeFiles:
    """The byte-pair tokenizer in ``folder``, for ``model``; ``tokenizer.json`` takes precedence over the ``pairs``."""
    config = read_config(folder)
    if (folder / TOKENIZER).is_file():
        return _read_tokenizer_json(folder / TOKENIZER, model, config)
    for vocabulary_file, merges_file in pairs:
        file = folder / vocabulary_file
        if file.is_file():
            vocabulary = _check_vocabulary(read_json(file), file)
            added = read_added_tokens(folder, config, [], vocabulary)
            return BpeFiles(file=file, vocabulary=vocabulary, merges=_read_merges(folder / merges_file), added=added)
    names = " or ".join(f"{vocabulary} with {merges}" for vocabulary, merges in pairs)
    raise data_error(f"no tokenizer of {model} at {folder}: it has neither {TOKENIZER} nor {names}.")


def vocabulary_and_merges(description: Description) -> dict[str, str]:
    """The same vocabulary and merges as two files with Hugging Face's names: name -> text."""
    vocabulary, merges = HUGGING_FACE
    model = description["model"]
    return {
        vocabulary: json.dumps(model["vocab"], ensure_ascii=False),
        merges: "\n".join([_VERSION, *(" ".join(pair) for pair in model["merges"])]) + "\n",
    }


def _read_tokenizer_json(file: Path, name: str, config: Mapping[str, object]) -> BpeFiles:
    description = read_json(file)
    model = description.get("model") if isinstance(description, dict) else None
    if not isinstance(model, dict) or not isinstance(model.get("merges"), list):
        raise data_error(f'{file} is not a tokenizer of {name}: it has no "model" with merges.')
    for setting in _UNREAD:
        if model.get(setting):
            value = json.dumps(model[setting])
            raise data_error(f'{file}: its model has "{setting}": {value}, which tokenizers of {name} do not have.')
    added = {each["content"]: each["id"] for each in _listed(description, file)}
    vocabulary = _check_vocabulary(_check_vocabulary(model.get("vocab"), file) | added, file)
    return BpeFiles(
        file=file,
        vocabulary=vocabulary,
        merges=[_split_merge(pair, f"{file}, merge {number:,}") for number, pair in enumerate(model["merges"], 1)],
        rules={
            "normalizer": description.get("normalizer"),
            "pre_tokenizer": description.get("pre_tokenizer"),
            "end_of_word_suffix": model.get("end_of_word_suffix") or None,
        },
        added=read_added_tokens(file.parent, config, description.get("added_tokens"), vocabulary),
    )


def _listed(description: Mapping[str, object], file: Path) -> list[dict[str, object]]:
    """The added tokens of a ``tokenizer.json``."""
    listed = description.get("added_tokens") or []
    if isinstance(listed, list) and all(map(_is_listed, listed)):
        return listed
    raise data_error(f'{file}: added_tokens must be a list of objects with "content" and "id".')


def _is_listed(entry: object) -> bool:
    fields = entry if isinstance(entry, dict) else {}
    return isinstance(fields.get("content"), str) and isinstance(fields.get("id"), int)


def _check_vocabulary(vocabulary: object, file: Path) -> dict[str, int]:
    if not isinstance(vocabulary, dict) or not all(isinstance(id, int) for id in vocabulary.values()):
        raise data_error(f"{file} is not a vocabulary: it must be a JSON object of tokens with their ids.")
    return vocabulary


def _read_merges(file: Path) -> list[Merge]:
    """Two subwords per line; the first line may give the version of the format."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise data_error(f"{file} cannot be read: {error}.") from error
    return [
        _split_merge(line, f"{file}, line {number:,}")
        for number, line in enumerate(lines, 1)
        if line and not (number == 1 and line.startswith("#version"))
    ]


def _split_merge(merge: object, place: str) -> Merge:
    """A merge is one string with a space, or a list of two strings, as newer versions of the library write it."""
    parts = merge.split(" ") if isinstance(merge, str) else merge
    if not isinstance(parts, list) or len(parts) != 2:
        raise data_error(f"{place}: {json.dumps(merge)} is not a merge of two tokens.")
    return parts[0], parts[1]
