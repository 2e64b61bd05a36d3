"""An exclusive lock between processes: held by one, released by its end, however that comes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from bertkit.storage.locks import LockHeldError, exclusive_lock

HOLDER = """
import sys, time
from pathlib import Path
from bertkit.storage.locks import exclusive_lock

with exclusive_lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@contextmanager
def held_by_another_process(path: Path, seconds: float = 600) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, str(path), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.parametrize("kind", ["new file", "file", "folder"])
def test_a_lock_is_exclusive_and_released_at_the_end(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lock"
    if kind == "folder":
        path.mkdir()
    if kind == "file":
        path.write_text("some text")
    with exclusive_lock(path), pytest.raises(LockHeldError, match="another process holds"), exclusive_lock(path):
        pytest.fail("the lock is held twice")
    with exclusive_lock(path):
        pass
    if kind == "file":
        assert path.read_text() == "some text"


def test_a_lock_of_another_process_is_refused_until_that_is_killed(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path / "lock") as process:
        with pytest.raises(LockHeldError), exclusive_lock(tmp_path / "lock"):
            pytest.fail("the lock is held twice")
        process.send_signal(signal.SIGKILL)
        process.wait()
        with exclusive_lock(tmp_path / "lock"):
            pass


def test_waiting_ends_when_the_other_process_has_released_the_lock(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path / "lock", seconds=0.5) as process:
        begin = time.monotonic()
        with exclusive_lock(tmp_path / "lock", wait=True):
            assert time.monotonic() - begin > 0.1
        assert process.wait() == 0


def test_a_child_process_does_not_inherit_the_lock(tmp_path: Path) -> None:
    with exclusive_lock(tmp_path / "lock"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], close_fds=False)
    # The kernel lets the parent go on a moment before it closes the child's files, so the lock may be held that long.
    deadline = time.monotonic() + 10
    try:
        while True:
            with suppress(LockHeldError), exclusive_lock(tmp_path / "lock"):
                return
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        child.kill()
        child.wait()


def test_a_path_that_cannot_be_opened_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), exclusive_lock(tmp_path / "nowhere" / "lock"):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["thesis", "nowhere"])
def test_a_link_is_neither_followed_nor_completed(tmp_path: Path, target: str) -> None:
    (tmp_path / "thesis").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / target)
    with pytest.raises(OSError, match="symbolic"), exclusive_lock(tmp_path / "lock"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock", "thesis"]
    assert (tmp_path / "thesis").read_text() == "precious"
