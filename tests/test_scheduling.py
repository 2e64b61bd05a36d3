"""Works that need each other: order, division among processes, failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bertkit.errors import BertkitError, DivergenceError
from bertkit.report.progress import Progress
from bertkit.scheduling import Unit, in_order, run_all

QUIET = Progress("quiet")


def work(name: str, folder: Path, log: list[str], *needs: Unit) -> Unit:
    def make(progress: Progress) -> None:
        log.append(name)
        (folder / name).touch()

    return Unit(name=name, make=make, is_done=(folder / name).exists, needs=needs)


def test_a_work_comes_once_and_after_what_it_needs(tmp_path: Path) -> None:
    log: list[str] = []
    text = work("text", tmp_path, log)
    left, right = work("left", tmp_path, log, text), work("right", tmp_path, log, work("text", tmp_path, log))
    both = work("both", tmp_path, log, left, right)
    assert [each.name for each in in_order([both, text])] == ["text", "left", "right", "both"]
    assert run_all([both], tmp_path / "locks", QUIET) == {}
    assert log == ["text", "left", "right", "both"]


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    log: list[str] = []
    (tmp_path / "text").touch()
    run_all([work("next", tmp_path, log, work("text", tmp_path, log))], tmp_path / "locks", QUIET)
    assert log == ["next"]


def test_what_diverged_takes_with_it_what_needs_it_and_nothing_else(tmp_path: Path) -> None:
    log: list[str] = []

    def diverge(progress: Progress) -> None:
        raise DivergenceError("the loss is not finite")

    bad = Unit(name="bad", make=diverge, is_done=lambda: False)
    works = [work("behind", tmp_path, log, bad), work("beside", tmp_path, log)]
    failed = run_all(works, tmp_path / "locks", QUIET)
    assert failed == {"bad": "the loss is not finite", "behind": "bad has failed"}
    assert log == ["beside"]


def test_other_errors_end_it(tmp_path: Path) -> None:
    def fail(progress: Progress) -> None:
        raise BertkitError("no file")

    with pytest.raises(BertkitError, match="no file"):
        run_all([Unit(name="bad", make=fail, is_done=lambda: False)], tmp_path / "locks", QUIET)


PROGRAM = """
import sys, time
from pathlib import Path
from bertkit.scheduling import Unit, run_all
from bertkit.report.progress import Progress

folder = Path(sys.argv[1])

def build(name, *needs):
    def make(progress):
        time.sleep(0.05)
        with (folder / name).open("x") as file:  # who makes it a second time fails
            file.write(sys.argv[2])
    return Unit(name=name, make=make, is_done=(folder / name).exists, needs=needs)

first = build("first")
run_all([build(str(number), first) for number in range(13)], folder / "locks", Progress("quiet"))
assert all((folder / str(number)).exists() for number in range(13))
"""


def test_processes_divide_the_works_and_all_see_the_end(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    both = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in ("left", "right")]
    for process in both:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    assert (tmp_path / "first").read_text() in ("left", "right")
