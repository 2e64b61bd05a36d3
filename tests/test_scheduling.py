"""Units of work that need each other: order, division among processes, failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from bertkit import scheduling
from bertkit.errors import BertkitError, DivergenceError
from bertkit.report.progress import Progress
from bertkit.scheduling import Unit, divide_work, order_units, run_all
from bertkit.storage.locks import exclusive_lock

QUIET = Progress("quiet")


def unit(name: str, folder: Path, log: list[str], *needs: Unit) -> Unit:
    def make(progress: Progress) -> None:
        log.append(name)
        (folder / name).touch()

    return Unit(name=name, make=make, is_done=(folder / name).exists, needs=needs)


def test_a_unit_is_made_once_and_after_what_it_needs(tmp_path: Path) -> None:
    log: list[str] = []
    text = unit("text", tmp_path, log)
    left, right = unit("left", tmp_path, log, text), unit("right", tmp_path, log, unit("text", tmp_path, log))
    both = unit("both", tmp_path, log, left, right)
    assert [each.name for each in order_units([both, text])] == ["text", "left", "right", "both"]
    assert run_all([both], tmp_path / "locks", QUIET) == {}
    assert log == ["text", "left", "right", "both"]


def test_a_finished_unit_is_not_made_again(tmp_path: Path) -> None:
    log: list[str] = []
    (tmp_path / "text").touch()
    run_all([unit("next", tmp_path, log, unit("text", tmp_path, log))], tmp_path / "locks", QUIET)
    assert log == ["next"]


def test_a_unit_that_diverges_fails_the_units_that_need_it_and_no_others(tmp_path: Path) -> None:
    log: list[str] = []

    def diverge(progress: Progress) -> None:
        raise DivergenceError("the loss is not finite")

    bad = Unit(name="bad", make=diverge, is_done=lambda: False)
    units = [unit("dependent", tmp_path, log, bad), unit("independent", tmp_path, log)]
    failed = run_all(units, tmp_path / "locks", QUIET)
    assert failed == {"bad": "the loss is not finite", "dependent": "bad has failed"}
    assert log == ["independent"]


def test_a_unit_that_diverged_is_not_made_again(tmp_path: Path) -> None:
    """Neither by another process nor by a repeated command: its record has the reason."""
    record, attempts = tmp_path / "record", []

    def diverge(progress: Progress) -> None:
        attempts.append(1)
        record.write_text("the loss is NaN")
        raise DivergenceError("the loss is NaN")

    bad = Unit(
        name="bad",
        make=diverge,
        is_done=lambda: False,
        failure=lambda: record.read_text() if record.exists() else "",
    )
    for _ in range(3):
        assert run_all([bad], tmp_path / "locks", QUIET) == {"bad": "the loss is NaN"}
    assert attempts == [1]


def test_a_unit_that_processes_make_together_is_not_shared_with_another_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first process would pass it over, and the others wait for it."""
    monkeypatch.setattr(scheduling, "world_size", lambda: 2)
    shared = Unit(name="net", make=lambda progress: None, is_done=lambda: False, shared=True)
    (tmp_path / "locks").mkdir()
    with exclusive_lock(tmp_path / "locks" / "net.lock"), pytest.raises(BertkitError, match="another job makes net"):
        run_all([shared], tmp_path / "locks", QUIET)


def test_other_errors_are_raised(tmp_path: Path) -> None:
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
        with (folder / name).open("x") as file:  # a second process that makes it fails
            file.write(sys.argv[2])
    return Unit(name=name, make=make, is_done=(folder / name).exists, needs=needs)

first = build("first")
run_all([build(str(number), first) for number in range(13)], folder / "locks", Progress("quiet"))
assert all((folder / str(number)).exists() for number in range(13))
"""


def test_processes_divide_the_units_and_all_wait_for_the_end(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    both = [subprocess.Popen([*command, name], stderr=subprocess.PIPE, text=True) for name in ("left", "right")]
    for process in both:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    assert (tmp_path / "first").read_text() in ("left", "right")


def test_an_output_that_is_deleted_is_an_error(tmp_path: Path) -> None:
    lost = Unit(name="lost", make=lambda progress: None, is_done=lambda: False)
    with pytest.raises(BertkitError, match=r"lost has finished but its output is gone\. Does another"):
        run_all([lost], tmp_path / "locks", QUIET)


def test_division_of_work_ends_when_no_work_is_left_anywhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Attempts that find work follow each other; otherwise half a second passes, which is announced once."""
    monkeypatch.setattr(scheduling, "time", SimpleNamespace(sleep=lambda seconds: events.append(f"sleep {seconds}")))
    attempts, done = iter([True, True, False, False, True, False]), iter([False, False, True])
    events: list[str] = []

    def attempt() -> bool:
        events.append("attempt")
        return next(attempts)

    divide_work(attempt, lambda: next(done), Progress("plain"), after_wait=lambda: events.append("after"))
    waiting = ["sleep 0.5", "after"]
    assert events == ["attempt"] * 3 + waiting + ["attempt"] + waiting + ["attempt"] * 2
    assert capsys.readouterr().err.count("waiting for the work of other processes") == 1


def test_an_exception_after_a_wait_stops_the_division(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduling, "_SECONDS_BETWEEN_ATTEMPTS", 0.0)

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        divide_work(lambda: False, lambda: False, QUIET, after_wait=stop)
