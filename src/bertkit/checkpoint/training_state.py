"""Checkpoints to resume from: folders that are complete or absent.

::

    step-00000123/model.safetensors       one file per group of tensors
    step-00000123/optimizer.safetensors
    step-00000123/random.safetensors
    step-00000123/state.json
    step-00000123/manifest.json           size and SHA-256 of the other files, written last

A folder is filled under a temporary name, flushed to disk and renamed, so a crash between any two instructions
leaves the old checkpoints, or the old and the new. The newest is the one with the highest step, whatever the clock
says. The lock of the run folder ensures that one process at a time saves into it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from bertkit.checkpoint.tensors import read_tensors, write_tensors
from bertkit.errors import BertkitError, data_error
from bertkit.storage.atomic import (
    BACKUP_PREFIX,
    explain_writing,
    flush_to_disk,
    make_folder,
    read_object,
    recoverable_path,
    remove_folder,
    remove_temporaries,
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


def save(folder: Path, step: int, groups: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, object]) -> Path:
    """Write the checkpoint of ``step`` into ``folder`` and return its path; it replaces one of the same step.

    ``state`` is plain JSON. Raises BertkitError if it cannot be written, as on a full disk; earlier ones stay intact.
    """
    assert all(_GROUP.fullmatch(name) for name in groups), "the name of a group becomes the name of a file"

    def write(temporary: Path) -> None:
        for name, tensors in groups.items():
            write_tensors(temporary / f"{name}{_SUFFIX}", tensors)

    return save_written(folder, step, write, state)


def save_written(folder: Path, step: int, write: Callable[[Path], object], state: Mapping[str, object]) -> Path:
    """``save`` with the safetensors files that ``write`` puts into the folder that it is given."""
    assert step >= 0
    final = folder / f"step-{step:08}"

    def fill(temporary: Path) -> None:
        write(temporary)
        write_json(temporary / _STATE, dict(state))
        for each in temporary.iterdir():
            flush_to_disk(each)
        # Last, when the other files are on the disk: the manifest never lists a file that is missing.
        write_checksums(temporary / _MANIFEST, {"format": _FORMAT, "step": step})

    with explain_writing(final):
        make_folder(folder)
        flush_to_disk(folder.parent)
        remove_temporaries(folder)
        write_folder(final, fill)
    return final


def load(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict[str, Any]]:
    """The groups and the state of a checkpoint, after a check of every byte."""
    manifest = verify(path)
    files = [name for name in manifest["files"] if name.endswith(_SUFFIX)]
    groups = {name.removesuffix(_SUFFIX): read_tensors(path / name) for name in files}
    return groups, read_object(path / _STATE)


def load_state(path: Path) -> dict[str, Any]:
    """Only the state of a checkpoint, which ``latest`` has checked; it is not checked again."""
    return read_object(path / _STATE)


def verify(path: Path) -> dict[str, Any]:
    """The manifest of a checkpoint, after a check of every byte; raises a data error if one has changed."""
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
    """The newest intact checkpoint (None if there is none yet), and the errors of newer ones that are damaged.

    Raises a data error if there are checkpoints and all are damaged: to start again is the user's decision.
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
        raise data_error(f"no checkpoint in {folder} is intact. {' '.join(faults)} Delete {folder} to start again.")
    return None, faults


def checkpoints(folder: Path) -> list[Path]:
    """All paths in ``folder`` with the name of a checkpoint, intact or not, lowest step first."""
    if not folder.is_dir():
        return []
    names = {path.name.removeprefix(BACKUP_PREFIX) for path in folder.iterdir()}
    return [recoverable_path(folder / name) for name in sorted(filter(_NAME.fullmatch, names), key=_step)]


def prune(folder: Path, keep: int, *, intact: Collection[Path] = ()) -> None:
    """Delete all checkpoints that are older than the newest ``keep`` intact ones.

    These are read and checked first, so that the last intact checkpoint is never deleted; those in ``intact``, which
    this process has written, are not: a read of what was just written comes from memory, and takes as long as to write.
    """
    assert keep >= 1
    kept, found = 0, checkpoints(folder)
    if len(found) <= keep:
        return
    for path in reversed(found):
        if kept == keep:
            remove_folder(path)
        else:
            kept += path in intact or _is_intact(path)


def _step(name: str) -> int:
    match = _NAME.fullmatch(name.removeprefix(BACKUP_PREFIX))
    assert match
    return int(match[1])


def _is_intact(path: Path) -> bool:
    try:
        verify(path)
    except BertkitError:
        return False
    return True
