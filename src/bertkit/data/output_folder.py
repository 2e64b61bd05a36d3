"""The output folder of a preparation: one process locks it, and records its job in it; other content is refused."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from bertkit.data.shard_writer import forget_journal, has_journal
from bertkit.data.shards import JOB, MANIFEST, TOKENIZER, Corpus
from bertkit.errors import BertkitError, usage_error
from bertkit.storage.atomic import (
    TEMPORARY_PREFIX,
    explain_output,
    explain_writing,
    remove_temporaries,
)
from bertkit.storage.checksums import read_record, write_checked
from bertkit.storage.locks import LockHeldError, exclusive_lock
from bertkit.storage.outputs import require_writable

_SHARDS = "*.safetensors"


@contextmanager
def lock_output(output: Path) -> Iterator[None]:
    """Make and lock the folder until the context ends; a new one that an error leaves empty is removed.

    Raises a usage error if it cannot be written, is locked by another process, or has files of other programs.
    """
    with ExitStack() as stack:
        with explain_output(output):
            is_new = not output.exists()
            output.mkdir(parents=True, exist_ok=True)
            try:
                stack.enter_context(exclusive_lock(output))
            except LockHeldError as error:
                raise usage_error(f"{output} is being written by another process. Choose another -o folder.") from error
        require_writable(output)
        if not (output / JOB).is_file() and any(not _is_temporary(path) for path in output.iterdir()):
            raise usage_error(f"{output} is not empty and was not made by bertkit prepare. Choose another -o folder.")
        with explain_writing(output):
            remove_temporaries(output)
        try:
            yield
        except BertkitError:
            if is_new:
                with suppress(OSError):  # it has something
                    output.rmdir()
            raise


@contextmanager
def emptied_by_errors(output: Path) -> Iterator[None]:
    """Delete the record of the job and its tokenizer if an error ends the context before the first shard is finished.

    A job that is interrupted keeps them, and so does one with shards: both continue with the same command.
    """
    had_shards = any(output.glob(_SHARDS))
    try:
        yield
    except BertkitError:
        if not had_shards and not has_journal(output):
            with suppress(OSError):  # the error matters more
                shutil.rmtree(output / TOKENIZER, ignore_errors=True)
                for path in (*output.glob(_SHARDS), output / JOB):
                    path.unlink(missing_ok=True)
        raise


def _is_temporary(path: Path) -> bool:
    return path.name.startswith(TEMPORARY_PREFIX)


def start_job(output: Path, job: Mapping[str, object]) -> bool:
    """Prepare the folder to start or continue ``job``; False if its complete result exists.

    Raises a usage error if another job has finished a shard in the folder. The record of another job without a shard is
    replaced.
    """
    recorded = read_record(output / JOB) if (output / JOB).is_file() else job
    if recorded.keys() != job.keys():
        raise usage_error(f"{output / JOB} was not written by bertkit prepare. Choose another -o folder.")
    differing = [name for name in job if recorded[name] != job[name]]
    if differing and ((output / MANIFEST).is_file() or has_journal(output)):
        raise usage_error(
            f"{output} holds a corpus with other {', '.join(differing)}. Choose another -o folder, or delete that one."
        )
    if not differing and (output / MANIFEST).is_file() and _is_complete(output):
        return False
    write_checked(output / JOB, job)
    return True


def _is_complete(output: Path) -> bool:
    """Whether everything in the manifest exists and is undamaged; otherwise the manifest is deleted."""
    try:
        Corpus.open(output, "heldout")
        Corpus.open(output, "train").load_tokenizer()
    except BertkitError:
        with explain_writing(output / MANIFEST):
            (output / MANIFEST).unlink()
        return False
    forget_journal(output)
    return True
