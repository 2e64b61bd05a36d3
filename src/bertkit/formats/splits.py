"""Which files of a folder are train, dev and test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bertkit.errors import data_error, usage_error
from bertkit.formats.arrow import dataset_splits
from bertkit.storage.locations import is_dataset, is_table_folder, is_text_folder
from bertkit.storage.suffixes import COMPRESSIONS, TABLES

_NAMES = {
    "train": ("train", "training"),
    "dev": ("dev", "validation", "valid", "val", "eval"),
    "test": ("test",),
}
_SUFFIXES = rf"({'|'.join(map(re.escape, TABLES))})({'|'.join(map(re.escape, COMPRESSIONS))})?"
_SHARD = r"-(\d{5})-of-(\d{5})"
"""How Hugging Face names the parts of a table."""


def holds_tables(folder: Path) -> bool:
    """Whether a folder has a train split that ``find_splits`` finds."""
    return is_dataset(folder) or bool(dataset_splits(folder)) or bool(_parts(folder)["train"])


def find_splits(folder: Path) -> dict[str, list[Path]]:
    """The files of every split in a folder: ``train.csv``, or ``train-00000-of-00002.parquet`` and so on.

    A folder saved by Hugging Face ``datasets``, or with a folder of text files for each label, counts as one file; if
    it has several splits, each of them does.
    """
    splits = _splits(folder)
    if "train" not in splits:
        present = dataset_splits(folder) or list(splits) or ["no train.csv, .tsv, .jsonl or .parquet"]
        raise usage_error(f"{folder} has no train split. It has {', '.join(present)}.")
    return splits


def tables_of(path: Path, split: str) -> list[Path]:
    """The files of one split if ``path`` is a folder with several; otherwise ``path`` itself."""
    if not path.is_dir() or is_table_folder(path):
        return [path]
    splits = _splits(path)
    if split not in splits:
        raise usage_error(f"{path} has no {split} split. It has {', '.join(splits) or 'no tables'}.")
    return splits[split]


def _splits(folder: Path) -> dict[str, list[Path]]:
    if is_dataset(folder):
        return {"train": [folder]}
    names = dataset_splits(folder)
    found = {split: [folder / name for name in names if name in _NAMES[split]] for split in _NAMES}
    if not names:
        found = _parts(folder)
    for split, files in found.items():
        kinds = {re.sub(_SHARD, r"-*-of-\2", file.name) for file in files}
        if len(kinds) > 1:
            raise usage_error(f"{folder} has more than one {split}: {', '.join(sorted(kinds))}. Name one of them.")
        _require_all_shards(files)
    return {split: files for split, files in found.items() if files}


def _parts(folder: Path) -> dict[str, list[Path]]:
    """The files of each split, or the folders with texts for each label; without either the folder itself is train."""
    found = {split: _files(folder, split) or _folders(folder, split) for split in _NAMES}
    if not any(found.values()) and is_text_folder(folder):
        found["train"] = [folder]
    return found


def _folders(folder: Path, split: str) -> list[Path]:
    return [folder / name for name in _NAMES[split] if is_text_folder(folder / name)]


def _files(folder: Path, split: str) -> list[Path]:
    pattern = re.compile(rf"({'|'.join(_NAMES[split])})({_SHARD})?{_SUFFIXES}", re.IGNORECASE)
    return sorted(path for path in folder.iterdir() if path.is_file() and pattern.fullmatch(path.name))


def _require_all_shards(files: Sequence[Path]) -> None:
    """Raise a data error if the files are parts of a table, and not as many as their names say."""
    shard = re.search(_SHARD, files[0].name) if files else None
    if shard is None:
        return
    before, after = files[0].name[: shard.start()], files[0].name[shard.end() :]
    present = {file.name for file in files}
    for number in range(int(shard[2])):
        name = f"{before}-{number:05}-of-{shard[2]}{after}"
        if name not in present:
            raise data_error(f"{files[0].parent} has {files[0].name}, but not {name}. All parts of a table are needed.")
