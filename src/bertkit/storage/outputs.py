"""Whether a command may write its output: it never replaces an input, and an existing file only if the user says so.

An output that is being written is locked by its partial file, a hidden file beside it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bertkit.errors import usage_error
from bertkit.storage.atomic import explain_output, make_folder
from bertkit.storage.locks import LockHeldError, exclusive_lock


def check_output(output: Path, *, inputs: Iterable[Path] = (), overwrite: bool = False) -> None:
    """Raise a usage error if ``output`` is one of ``inputs`` or a folder, or exists and ``overwrite`` is false."""
    if not os.path.lexists(output):
        return
    for path in inputs:
        if path.exists() and output.exists() and path.samefile(output):
            raise usage_error(f"{output} is the input. Choose another -o file.")
    if output.is_dir():
        raise usage_error(f"{output} is a folder. Name a file in it with -o.")
    if not overwrite:
        raise usage_error(f"{output} exists. Choose another -o, or replace it with --overwrite.")


def open_output_folder(folder: Path, names: Iterable[str], *, overwrite: bool = False) -> None:
    """Make the folder, before any work, in which a command will write the files ``names``.

    Raises a usage error if it cannot be written to, or has one of the files and ``overwrite`` is false.
    """
    for name in names:
        check_output(folder / name, overwrite=overwrite)
    with explain_output(folder):
        make_folder(folder)
    require_writable(folder)


def resolve_output(folder: Path) -> Path:
    """The absolute path of a folder that is written as a whole, in place of what is there.

    Raises a usage error for the folder that this process is in, and for those above it: after the replacement it would
    be in one that is deleted.
    """
    try:
        output = folder.resolve()
        is_above = Path.cwd().is_relative_to(output)
    except (OSError, RuntimeError) as error:  # Python 3.11 raises a RuntimeError for a link that leads to itself
        raise usage_error(f"cannot write to {folder}: {error}. Choose another -o folder.") from error
    if is_above:
        raise usage_error(f"{folder} would be replaced as a whole, and you are in it. Choose a new -o folder.")
    return output


def require_writable(folder: Path) -> None:
    """Raise a usage error if this process may not make files in ``folder``."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise usage_error(f"cannot write to {folder}: no permission. Choose another -o folder.")


def require_own_folder(record: Path, names: Iterable[str]) -> None:
    """Raise a usage error if the folder of ``record`` has no record but one of ``names``, which would be replaced.

    The record must be the first file that is written into such a folder.
    """
    folder = record.parent
    found = [name for name in names if os.path.lexists(folder / name)]
    if found and not record.exists():
        raise usage_error(
            f"{folder} has {found[0]} and no {record.name}: nothing is replaced. Choose another -o folder."
        )


def partial_path(output: Path) -> Path:
    """The partial file of ``output``."""
    return output.with_name(f".bertkit-partial-{output.name}")


@contextmanager
def locked_partial(output: Path) -> Iterator[Path]:
    """The partial file, which no other process writes meanwhile; it stays."""
    partial = partial_path(output)
    with ExitStack() as stack:
        try:
            stack.enter_context(exclusive_lock(partial))
        except LockHeldError as error:
            raise usage_error(f"{output} is being written by another process. Choose another -o file.") from error
        except OSError as error:
            if isinstance(error, FileNotFoundError) and not output.parent.exists():  # it does in /proc
                message = f"the folder {output.parent} does not exist: create it, or choose another."
                raise usage_error(message) from error
            raise usage_error(f"cannot write to {output.parent}: {error.strerror}. Choose another -o file.") from error
        yield partial


@contextmanager
def locked_output(output: Path) -> Iterator[None]:
    """Lock an output that is written at once; the partial file, which is the lock only, is deleted in the end."""
    with explain_output(output):
        make_folder(output.parent)
    with locked_partial(output) as lock:
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
