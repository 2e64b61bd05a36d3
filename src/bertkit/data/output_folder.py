"""The folder that a preparation writes to: held by one process, known by its job, never taken from anybody else."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertkit.data.shard_writer import forget_journal, has_journal
from bertkit.data.shards import MANIFEST, Corpus
from bertkit.errors import BertkitError, usage_error
from bertkit.storage.atomic import TEMPORARY_PREFIX, explain_writing, read_json, remove_temporaries, write_json

JOB = "prepare.json"
"""Says which job a folder belongs to, from before its first shard on."""


@contextmanager
def hold(output: Path) -> Iterator[None]:
    """Make the folder, or see that it is ours; nobody else may write there until the end."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(output, os.O_RDONLY)
    except OSError as error:
        raise usage_error(f"cannot write to {output}: {error.strerror}. Choose another -o folder.") from error
    try:
        _lock(output, descriptor)
        if not os.access(output, os.W_OK | os.X_OK):
            raise usage_error(f"cannot write to {output}: no permission. Choose another -o folder.")
        if not (output / JOB).is_file() and any(not _is_temporary(path) for path in output.iterdir()):
            raise usage_error(f"{output} is not empty and was not made by bertkit prepare. Choose another -o folder.")
        with explain_writing(output):
            remove_temporaries(output)
        yield
    finally:
        os.close(descriptor)


def _lock(output: Path, descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise usage_error(f"{output} is being written by another process. Choose another -o folder.") from error


def _is_temporary(path: Path) -> bool:
    return path.name.startswith(TEMPORARY_PREFIX)


def begin(output: Path, job: Mapping[str, Any]) -> bool:
    """Make the folder ready for ``job`` to begin or to go on; False if its whole result is there.

    What another job finished is refused, a shard or all. One that came to nothing gives way.
    """
    known = read_json(output / JOB) if (output / JOB).is_file() else job
    if not isinstance(known, dict) or known.keys() != job.keys():
        raise usage_error(f"{output / JOB} was not written by bertkit prepare. Choose another -o folder.")
    differing = [name for name in job if known[name] != job[name]]
    if differing and ((output / MANIFEST).is_file() or has_journal(output)):
        raise usage_error(
            f"{output} holds a corpus with other {', '.join(differing)}. Choose another -o folder, or delete that one."
        )
    if not differing and (output / MANIFEST).is_file() and _is_whole(output):
        return False
    write_json(output / JOB, job)
    return True


def _is_whole(output: Path) -> bool:
    """Whether all is there that the manifest names. If something is damaged, all is made again."""
    try:
        Corpus.open(output, "heldout")
        Corpus.open(output, "train").load_tokenizer()
    except BertkitError:
        with explain_writing(output / MANIFEST):
            (output / MANIFEST).unlink()
        return False
    forget_journal(output)
    return True
