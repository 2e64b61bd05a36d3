"""What a command that failed prints, and its exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertkit.cli.errors import explain
from bertkit.errors import data_error
from bertkit.report.progress import Progress
from bertkit.scheduling import divide_work


class OutOfMemoryError(RuntimeError):
    """As PyTorch names it."""


class Stopped(KeyboardInterrupt):
    """As Interrupted."""

    exit_code = 143


def test_an_error_in_code_of_the_user_is_shown_with_its_place(tmp_path: Path) -> None:
    """A task, an objective or an encoder of one's own, which bertkit calls."""
    module = tmp_path / "mine.py"
    module.write_text("def add_labels():\n    return {}['nps']\n")
    names: dict[str, Any] = {}
    exec(compile(module.read_text(), str(module), "exec"), names)
    with pytest.raises(KeyError) as raised:
        divide_work(names["add_labels"], lambda: True, Progress("quiet"))
    assert explain(raised.value) == (f"error in {module}:2 (add_labels): KeyError: 'nps'", 1)


@pytest.mark.parametrize(
    ("error", "line", "exit_code"),
    [
        (data_error("shard 3 is torn."), "error: shard 3 is torn.", 3),
        (KeyboardInterrupt(), "interrupted", 130),
        (Stopped("saved"), "saved", 143),
        (SystemExit(143), "", 143),
        (MemoryError(), "error: out of memory. Close other programs, or take", 1),
        (MemoryError("7 GiB"), "error: out of memory: 7 GiB. Close other programs, or take", 1),
        (OutOfMemoryError("tried 7 GiB."), "error: tried 7 GiB. Close other programs, or take", 1),
        (OSError(28, "No space left on device", "a/b"), "error: a/b: No space left on device.", 1),
        (OSError(24, "Too many open files", "a/b"), "error: a/b: Too many open files. Allow more: ulimit -n", 1),
        (RuntimeError("can't start new thread"), "error: out of memory: can't start new thread. Close other", 1),
        (KeyError("x"), "error: KeyError: 'x' (a bug in bertkit?", 1),
        (SyntaxError("invalid syntax", ("mine.py", 3, 1, "x =")), "error in mine.py:3: invalid syntax.", 1),
    ],
)
def test_every_error_has_its_line_and_exit_code(error: BaseException, line: str, exit_code: int) -> None:
    message, code = explain(error)
    assert message.startswith(line)
    assert code == exit_code
