"""Checkpoints to resume from: folders that are whole or not there.

``step-00000123/`` holds one safetensors file a group of tensors, ``state.json`` and, written last,
``manifest.json`` with the size and SHA-256 of every other file. The folder is filled under a temporary name,
flushed to disk and renamed, so a crash between any two instructions leaves the old checkpoints or the old and
the new. Nothing is pickled. The newest is the one with the highest step; clocks are not asked.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from bertkit.checkpoint._tensors import read_tensors, write_tensors
from bertkit.errors import BertkitError, data_error
from bertkit.storage import (
    TEMPORARY_PREFIX,
    publish_folder,
    read_json,
    remove_temporaries,
    sha256_of,
    write_file,
    write_json,
)

_NAME = re.compile(r"step-(\d{8,})")
_MANIFEST = "manifest.json"
_STATE = "state.json"


def save(folder: Path, step: int, groups: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> Path:
    """Write the checkpoint of ``step`` into ``folder`` and return its path; a whole one of that step stays."""
    final = folder / f"step-{step:08}"
    try:
        if final.exists():
            if _is_whole(final):
                return final
            shutil.rmtree(final)
        folder.mkdir(parents=True, exist_ok=True)
        remove_temporaries(folder)
        temporary = folder / f"{TEMPORARY_PREFIX}{os.getpid()}-{final.name}"
        temporary.mkdir()
        for name, tensors in groups.items():
            write_file(temporary / f"{name}.safetensors", partial(write_tensors, tensors=tensors))
        write_json(temporary / _STATE, dict(state))
        write_json(temporary / _MANIFEST, _describe(temporary))
        publish_folder(temporary, final)
    except OSError as error:
        raise _not_saved(folder, error) from error
    return final


def _not_saved(folder: Path, error: OSError) -> BertkitError:
    shutil.rmtree(folder / f"{TEMPORARY_PREFIX}{os.getpid()}", ignore_errors=True)
    return BertkitError(f"cannot save a checkpoint in {folder}: {error.strerror or error}. Earlier ones are intact.")


def _describe(folder: Path) -> dict[str, Any]:
    return {path.name: {"size": path.stat().st_size, "sha256": sha256_of(path)} for path in sorted(folder.iterdir())}


def load(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """The groups and the state of one checkpoint, after every byte was checked."""
    manifest = _verify(path)
    groups = {name.removesuffix(".safetensors"): read_tensors(path / name) for name in manifest if name != _STATE}
    state: dict[str, Any] = read_json(path / _STATE)
    return groups, state


def _verify(path: Path) -> dict[str, Any]:
    manifest = read_json(path / _MANIFEST)
    if not isinstance(manifest, dict) or _STATE not in manifest:
        raise data_error(f"{path / _MANIFEST} is not the manifest of a checkpoint.")
    for name, facts in manifest.items():
        file = path / name
        if file.name != name or not file.is_file():
            raise data_error(f"{file} is missing.")
        try:
            whole = file.stat().st_size == facts["size"] and sha256_of(file) == facts["sha256"]
        except (OSError, KeyError, TypeError) as error:
            raise data_error(f"{file} cannot be checked: {error}.") from error
        if not whole:
            raise data_error(f"{file} is damaged: its SHA-256 is not the manifest's.")
    return manifest


def _is_whole(path: Path) -> bool:
    try:
        _verify(path)
    except BertkitError:
        return False
    return True


def checkpoints(folder: Path) -> list[Path]:
    """Everything in ``folder`` that bears a checkpoint's name, lowest step first; whole or not."""
    if not folder.is_dir():
        return []
    named = [(match, path) for path in folder.iterdir() if (match := _NAME.fullmatch(path.name)) and path.is_dir()]
    return [path for match, path in sorted(named, key=lambda pair: int(pair[0][1]))]


def latest(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest whole checkpoint, and why newer ones were passed over."""
    faults: list[str] = []
    for path in reversed(checkpoints(folder)):
        try:
            _verify(path)
        except BertkitError as error:
            faults.append(str(error))
        else:
            return path, faults
    return None, faults


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest ``keep`` checkpoints."""
    for path in checkpoints(folder)[:-keep]:
        shutil.rmtree(path)
