"""Paths that a user names and that must exist: an error says what is there instead. Nothing slow is imported."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from shlex import quote

from bertkit.errors import BertkitError, data_error, find_nearest, list_names, usage_error
from bertkit.storage.atomic import recoverable_path
from bertkit.storage.hub import find_downloaded, is_hub_id

_MODEL_FILES = ("run.json", "config.json", "model/config.json", "bert_config.json")
"""A folder with one of them is a run or a model."""

VOCABULARY_FOLDER = ("tokenizer.json", "tokenizer_config.json", "config.json", "bert_config.json")
"""Files of a tokenizer or a model: a ``vocab.txt`` beside one of them is a vocabulary and no text."""

_MOST_SHOWN = 5
_LFS_POINTER = b"version https://git-lfs"


def require_files(paths: Sequence[Path]) -> None:
    """Raise a usage error for the first path that is a folder or does not exist."""
    for path in paths:
        if path.is_dir():
            raise usage_error(f"{path} is a folder; name its files, such as {path}/*.txt.")
        if not path.is_file():
            raise usage_error(f"no file at {path}.{suggest_path(path)}")


def is_dataset(folder: Path) -> bool:
    """Whether a folder was written by ``save_to_disk`` of a ``Dataset``."""
    return any((folder / name).is_file() for name in ("state.json", "dataset_info.json"))


def is_text_folder(folder: Path) -> bool:
    """Whether a folder has two or more folders with files of text in them, one for each label."""
    return folder.is_dir() and len(label_folders(folder)) > 1


def label_folders(folder: Path) -> list[Path]:
    """The folders in ``folder`` with a file of text in them, except hidden ones and that of IMDB's unlabelled texts.

    A folder with two such folders of its own is none: IMDB's train and test also have lists of addresses in them.
    """
    return [each for each in _folders_with_text(folder) if len(_folders_with_text(each)) < 2]


def _folders_with_text(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:  # tells folders from files without asking for each of 25,000 reviews
        named = [Path(each) for each in entries if each.is_dir() and each.name != "unsup" and each.name[0] != "."]
    return sorted(filter(_has_text, named))


def _has_text(folder: Path) -> bool:
    try:
        if any((folder / name).is_file() for name in VOCABULARY_FOLDER):
            return False
        return any(map(is_text, folder.iterdir()))
    except OSError:  # lost+found, which a disk has and nobody may read
        return False


def is_text(path: Path) -> bool:
    """Whether this is a file of text by its name: ``.txt``, or without a suffix, as in 20 Newsgroups."""
    return path.suffix.lower() in ("", ".txt") and not path.name.startswith(".") and path.is_file()


def is_table_folder(folder: Path) -> bool:
    """Whether a folder is one table: a saved ``Dataset``, or files of text by their labels."""
    return is_dataset(folder) or is_text_folder(folder)


def require_tables(paths: Sequence[Path]) -> None:
    """Raise a usage error for the first path at which there is neither a file nor a folder that is a table."""
    for path in paths:
        if not path.is_dir():
            require_files([path])
        elif not is_table_folder(path):
            raise usage_error(
                f"{path} is a folder and no table: name a file in it. Texts with a file each make a table, such as a "
                ".csv with a row per file and a column called text."
            )


def require_texts(paths: Sequence[Path]) -> None:
    """Raise a usage error for the first path at which there is neither a file nor a folder of files."""
    require_files([path for path in paths if not path.is_dir()])


def require_model(path: Path) -> None:
    """Raise a usage error if there is nothing at the path of a model or a run."""
    if not locate_model(path).exists():
        raise explain_missing_model(path)


def require_tokenizer(path: Path) -> None:
    """Raise a usage error if there is nothing at the path of a tokenizer or of a model."""
    require_any(locate_model(path))


def locate_model(path: Path) -> Path:
    """Where the model ``path`` is: there, at its backup after a crash, or a copy of the hub's model of that name."""
    found = recoverable_path(path)
    return found if found.exists() else find_downloaded(str(path)) or found


def require_run(path: Path) -> None:
    """Raise a usage error if there is nothing at the path of a run."""
    if not path.exists():
        runs = sorted(each.parent for each in path.parent.glob("*/run.json"))
        near = _suggest(path, runs)
        raise usage_error(f"no run at {path}.{near or list_paths(runs)}")


def require_data(path: Path) -> None:
    """Raise a usage error if there is no folder at the path of a prepared corpus."""
    if path.is_file() and path.suffix == ".toml":
        raise usage_error(f"{path} is a file of settings, and no prepared corpus. Give it with --config {path}")
    if path.is_file():
        command = "bertkit prepare FILE... --tokenizer TOK -o DATA"
        raise usage_error(f"{path} is a file, and no prepared corpus. Files of text are prepared with: {command}")
    if not path.is_dir():
        near = _suggest(path, (each.parent for each in path.parent.glob("*/manifest.json")))
        command = f"bertkit prepare FILE... --tokenizer TOK -o {quote(str(path))}"
        raise usage_error(f"no data at {path}.{near or f' Make it with: {command}'}")


def require_any(path: Path) -> None:
    """Raise a usage error if there is neither a file nor a folder at ``path``."""
    if not path.exists():
        raise usage_error(f"no file or folder at {path}.{suggest_path(path)}")


def explain_missing_model(path: Path) -> BertkitError:
    """The error for a path at which there is no model: what is there, or which models are near."""
    try:
        return usage_error(f"no model {_explain_absence(path)}")
    except OSError as error:
        return usage_error(f"no model at {path}: {error.strerror}.")


def _explain_absence(path: Path) -> str:
    if (path / "best").exists():
        return f"in {path}, which is a sweep. Its best model: {path / 'best'}"
    if (path / "run.json").is_file() and (path / "results.json").is_file():
        return f"in {path} any more: that run has ended, and its model has been deleted. Train in another -o folder."
    if (path / "run.json").is_file():
        advice = "Repeat or resume its command; if its training diverged, begin again with a lower --lr."
        return f"in {path} yet: that run has not ended, or failed. {advice}"
    if path.is_file():
        name = f"its folder: {path.parent}" if (path.parent / "config.json").is_file() else "the folder of a model."
        return f"at {path}, which is a file. Name {name}"
    if path.exists():
        return f"at {path}: it has neither config.json nor model/config.json."
    siblings = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    models = [each for each in siblings if any((each / name).is_file() for name in _MODEL_FILES)]
    if near := _suggest(path, models):
        return f"at {path}.{near}"
    hint = ""
    if is_hub_id(str(path)):
        hint = f" If that is a model on the hub: bertkit import {path} -o {path.name}, and name the folder."
    elif path.name == str(path) and path.name.startswith("bert-"):
        hint = f" On the hub it is google-bert/{path}: bertkit import google-bert/{path} -o {path}"
    return f"at {path}.{list_paths(models)}{hint}"


def list_paths(paths: Sequence[Path]) -> str:
    """`` There are: runs/a, runs/b and 3 more.``; empty without any."""
    return f" There are: {list_names(list(map(str, paths)), _MOST_SHOWN)}." if paths else ""


def suggest_path(path: Path) -> str:
    """`` Did you mean PATH?`` with the most similar name in the same folder; empty if there is none."""
    return _suggest(path, (each for each in path.parent.glob("*") if each != path))  # a broken link has the name itself


def _suggest(path: Path, others: Iterable[Path]) -> str:
    near = find_nearest(path.name, (each.name for each in others))
    return "" if near is None else f" Did you mean {path.parent / near}?"


def refuse_lfs_pointers(paths: Iterable[Path]) -> None:
    """Raise a data error for a file that is a pointer of Git LFS, a few lines of text in place of the content."""
    for path in paths:
        if path.is_file():
            with path.open("rb") as file:
                if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
                    raise data_error(f"{path} is a pointer of Git LFS and not the file itself. Fetch it: git lfs pull")
