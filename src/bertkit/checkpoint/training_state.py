"""Checkpoints to resume from: folders that are whole or not there.

::

    step-00000123/model.safetensors       one file a group of tensors
    step-00000123/optimizer.safetensors
    step-00000123/random.safetensors
    step-00000123/state.json
    step-00000123/manifest.json           size and SHA-256 of the others, written last

A folder is filled under a temporary name, flushed to disk and renamed, so a crash between any two instructions
leaves the old checkpoints or the old and the new. The newest is the one with the highest step; clocks are not
asked. One process at a time saves into a folder; the run's lock sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from bertkit.checkpoint.tensors import read_tensors, write_tensors
from bertkit.errors import BertkitError, data_error
from bertkit.storage.atomic import (
    SET_ASIDE_PREFIX,
    explain_writing,
    flush_to_disk,
    make_folder,
    read_json,
    remove_folder,
    remove_temporaries,
    standing,
    write_folder,
    write_json,
)
from bertkit.storage.checksums import check_files, read_checksums, write_checksums

_NAME = re.compile(r"step-([0-9]{8,})")
_GROUP = re.compile(r"[a-z_]+")
_MANIFEST = "manifest.json"
_STATE = "state.json"
_SUFFIX = ".safetensors"
_FORMAT = 2


def save(folder: Path, step: int, groups: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]) -> Path:
    """Write the checkpoint of ``step`` into ``folder`` and return its path; it replaces one of the same step.

    ``state`` is plain JSON. Raises BertkitError when the disk is full or the like: all that was there is intact.
    """
    assert all(_GROUP.fullmatch(name) for name in groups), "a group's name becomes a file's"

    def write(temporary: Path) -> None:
        for name, tensors in groups.items():
            write_tensors(temporary / f"{name}{_SUFFIX}", tensors)

    return save_written(folder, step, write, state)


def save_written(folder: Path, step: int, write: Callable[[Path], object], state: Mapping[str, Any]) -> Path:
    """The same with whatever files of tensors ``write`` puts into the folder that it is given."""
    assert step >= 0
    final = folder / f"step-{step:08}"

    def fill(temporary: Path) -> None:
        write(temporary)
        write_json(temporary / _STATE, dict(state))
        for each in temporary.iterdir():
            flush_to_disk(each)
        # Last, and after the others are on the disk: a manifest never vouches for what is not there.
        write_checksums(temporary / _MANIFEST, {"format": _FORMAT, "step": step})

    with explain_writing(final):
        make_folder(folder)
        flush_to_disk(folder.parent)
        remove_temporaries(folder)
        write_folder(final, fill)
    return final


def load(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """The groups and the state of one checkpoint, after every byte was checked."""
    manifest = verify(path)
    files = [name for name in manifest["files"] if name.endswith(_SUFFIX)]
    groups = {name.removesuffix(_SUFFIX): read_tensors(path / name) for name in files}
    state: dict[str, Any] = read_json(path / _STATE)
    return groups, state


def load_state(path: Path) -> dict[str, Any]:
    """The state alone of a checkpoint that ``latest`` has found whole; nothing is checked again."""
    state: dict[str, Any] = read_json(path / _STATE)
    return state


def verify(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint, after every byte was checked; raises a data error where one is not what it was."""
    if not path.is_dir():
        raise data_error(f"{path} is not a checkpoint: it is {'not a folder' if path.exists() else 'not there'}.")
    manifest = read_checksums(path / _MANIFEST, version=_FORMAT, advice="Start the run again.")
    check_files(path / _MANIFEST, manifest)
    if _STATE not in manifest["files"]:
        raise data_error(f"{path / _MANIFEST} is not the manifest of a checkpoint: it lists no {_STATE}.")
    if _NAME.fullmatch(path.name) and manifest.get("step") != _step(path.name):
        raise data_error(f"{path} holds step {manifest.get('step')}, not that of its name.")
    return manifest


def latest(folder: Path) -> tuple[Path | None, list[str]]:
    """The newest whole checkpoint, None where there is none yet, and why newer ones were passed over.

    Raises a data error where there are checkpoints and not one is whole: to begin again is the user's decision.
    """
    faults: list[str] = []
    for path in reversed(checkpoints(folder)):
        try:
            verify(path)
        except BertkitError as error:
            faults.append(str(error))
        else:
            return path, faults
    if faults:
        raise data_error(f"no checkpoint in {folder} is whole. {' '.join(faults)} Delete {folder} to start again.")
    return None, faults


def checkpoints(folder: Path) -> list[Path]:
    """Everything in ``folder`` that bears a checkpoint's name, lowest step first; whole or not."""
    if not folder.is_dir():
        return []
    names = {path.name.removeprefix(SET_ASIDE_PREFIX) for path in folder.iterdir()}
    return [standing(folder / name) for name in sorted(filter(_NAME.fullmatch, names), key=_step)]


def prune(folder: Path, keep: int) -> None:
    """Delete what is older than the newest ``keep`` checkpoints.

    Those are read back first: a damaged one does not count, so that what is deleted is never the last good one.
    """
    assert keep >= 1
    kept = 0
    for path in reversed(checkpoints(folder)):
        if kept == keep:
            remove_folder(path)
        else:
            kept += _is_whole(path)


def _step(name: str) -> int:
    match = _NAME.fullmatch(name.removeprefix(SET_ASIDE_PREFIX))
    assert match
    return int(match[1])


def _is_whole(path: Path) -> bool:
    try:
        verify(path)
    except BertkitError:
        return False
    return True
