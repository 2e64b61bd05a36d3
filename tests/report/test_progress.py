"""Progress as lines, records and a bar."""

from __future__ import annotations

import io
import json
import logging
import re
from types import SimpleNamespace

import pytest

from bertkit.options.job import ProgressMode
from bertkit.report.progress import Progress, describe_duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A list of one number: the time in seconds. Other threads of the process, such as a server's, keep theirs."""
    now = [100.0]
    monkeypatch.setattr("bertkit.report.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def run_job(mode: ProgressMode, clock: list[float]) -> None:
    with Progress(mode) as progress:
        progress.say("13 files\x1b[2J")
        progress.start("training", 99, "step")
        progress.advance(30)
        clock[0] += 7
        progress.advance(37, loss=3.21098, **{"tokens/s": 12345.6})
        clock[0] += 1
        progress.advance(38, loss=3.0)
        clock[0] += 61
        progress.advance(99, loss=2.5)


def test_a_job_of_one_unit_is_named_in_the_singular(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("plain") as progress:
        progress.start("predicting", 1, "row")
        progress.advance(1)
    *_, last = capsys.readouterr().err.splitlines()
    assert last == "predicting: 1 row in 0 s"


@pytest.mark.parametrize("mode", ["plain", "json"])
def test_nothing_is_said_of_a_total_that_nobody_knows(mode: ProgressMode, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(mode) as progress:
        progress.start("predicting", None, "row")
        progress.advance(0)
        progress.advance(3)
        progress.finish()
    shown = capsys.readouterr().err
    if mode == "plain":
        assert shown == "predicting: 0 rows\npredicting: 3 rows in 0 s\n"
    else:
        assert [json.loads(line)["total"] for line in shown.splitlines()] == [None, None]


def test_plain_lines_come_every_few_seconds(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    run_job("auto", clock)
    assert capsys.readouterr().err.splitlines() == [
        "13 files\\x1b[2J",
        "training: 30 of 99 steps (30%)",
        "training: 37 of 99 steps (37%), loss 3.211, tokens/s 12,346",
        "training: 99 of 99 steps (100%), loss 2.5",
        "training: 99 steps in 69 s",
    ]


def test_a_program_that_shows_the_logger_gets_log_records(
    clock: list[float], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run_job("auto", clock)
    assert [(record.name, record.levelname, record.getMessage()) for record in caplog.records] == [
        ("bertkit", "INFO", "13 files\\x1b[2J"),
        ("bertkit", "INFO", "training: 30 of 99 steps (30%)"),
        ("bertkit", "INFO", "training: 37 of 99 steps (37%), loss 3.211, tokens/s 12,346"),
        ("bertkit", "INFO", "training: 99 of 99 steps (100%), loss 2.5"),
        ("bertkit", "INFO", "training: 99 steps in 69 s"),
    ]
    assert capsys.readouterr().err == ""


def test_a_level_of_the_logger_above_info_silences(
    clock: list[float], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="bertkit")
    run_job("auto", clock)
    assert not caplog.records
    assert capsys.readouterr().err == ""


def test_a_mode_that_is_named_is_not_logged(
    clock: list[float], capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    run_job("plain", clock)
    assert not caplog.records
    assert len(capsys.readouterr().err.splitlines()) == 5


def test_a_logger_without_a_handler_is_not_used(
    clock: list[float],
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger("bertkit"), "propagate", False)
    caplog.set_level(logging.INFO, logger="bertkit")
    run_job("auto", clock)
    assert len(capsys.readouterr().err.splitlines()) == 5


def test_json_lines_are_records(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    run_job("json", clock)
    records = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [record["event"] for record in records] == ["message", "progress", "progress", "progress", "finished"]
    assert records[2] == {
        "event": "progress",
        "job": "training",
        "done": 37,
        "total": 99,
        "unit": "step",
        "loss": 3.21098,
        "tokens/s": 12345.6,
        "seconds_left": None,
    }


def test_json_lines_show_a_loss_that_is_no_number_as_null(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("json") as progress:
        progress.start("training", 9, "step")
        progress.advance(1, loss=float("nan"))
    shown = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [each["event"] for each in shown] == ["progress", "finished"]
    assert [each["loss"] for each in shown] == [None, None]


def test_quiet_mode_writes_nothing(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    run_job("quiet", clock)
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_is_a_bar(clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    run_job("auto", clock)
    shown = terminal.getvalue()
    assert "━" in shown
    assert shown.rstrip().endswith("training: 99 steps in 69 s")


def test_a_notebook_shows_one_line_per_job(
    clock: list[float], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = type("ZMQInteractiveShell", (), {})  # the shell of a notebook
    monkeypatch.setattr("builtins.get_ipython", shell, raising=False)
    with Progress("auto") as progress:
        progress.say("13 files")
        progress.start("training", 9, "step")
        for done in range(1, 8):
            clock[0] += 60
            progress.advance(done, loss=1 / done)
        progress.say("saved")
        progress.advance(9)
    written = capsys.readouterr().err
    assert "training: 4 of 9 steps (44%), 5 min left, loss 0.25" in written
    assert "training: 7 of 9 steps (78%), 2 min left, loss 0.1429" in written
    assert [overwrite(line) for line in written.split("\n")] == ["13 files", "saved", "training: 9 steps in 6 min", ""]


def overwrite(line: str) -> str:
    """What is visible of a line: after a carriage return, characters replace those that were written before."""
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown.rstrip()


def test_an_interrupted_job_is_summarised(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError), Progress("plain") as progress:
        progress.start("reading", 7, "file")
        progress.advance(3)
        raise RuntimeError
    assert capsys.readouterr().err.splitlines()[-1] == "reading: 3 of 7 files in 0 s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (99, "99 s"), (750, "12 min"), (7530, "2 h 06 min"), (359_000, "99 h 43 min"), (1e9, "11,574 days")],
)
def test_durations(seconds: float, text: str) -> None:
    assert describe_duration(seconds) == text


def test_the_time_left_does_not_count_the_first_unit(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("plain") as progress:
        progress.start("training", 10, "step")
        progress.advance(0)
        clock[0] += 60  # the start-up
        progress.advance(1)
        clock[0] += 6
        progress.advance(2, loss=3.0)
    shown = capsys.readouterr().err.splitlines()
    assert shown[1:3] == ["training: 1 of 10 steps (10%)", "training: 2 of 10 steps (20%), 48 s left, loss 3"]


def test_an_evaluation_within_a_job_is_shown(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("plain") as progress:
        progress.part("held out", 1, 4)  # no job yet: nothing is shown
        progress.start("training", 10, "step")
        progress.advance(5, loss=3.0)
        for item in progress.watch("held out", "abcd", 4):
            assert item in "abcd"
            clock[0] += 6
    shown = capsys.readouterr().err.splitlines()
    assert shown[1:4] == [
        "training: 5 of 10 steps (50%), held out 25%, loss 3",
        "training: 5 of 10 steps (50%), held out 50%, loss 3",
        "training: 5 of 10 steps (50%), held out 75%, loss 3",
    ]


def test_a_narrow_terminal_shows_the_loss_and_the_time_left(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setenv("COLUMNS", "80")
    with Progress("auto") as progress:
        progress.start("pretraining", 100_000, "step")
        for done in (0, 1, 23_456):
            clock[0] += 1000
            progress.advance(done, loss=3.21098, **{"tokens/s": 123456.7, "mfu": 0.41})
    lines = [line for line in re.sub(r"\x1b\[[\d;?]*\w", "", terminal.getvalue()).splitlines() if "23,456/" in line]
    assert lines
    assert all("54 min left, loss 3.211" in line and "━" in line for line in lines)
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("mode", ["auto", "plain"])
def test_the_name_of_a_job_is_shown_as_it_is(mode: ProgressMode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    with Progress(mode) as progress:
        progress.start("dev [v2] [/b] :key: \033]0;title", 1, "row")
        progress.advance(1)
    shown = re.sub(r"\s+", " ", terminal.getvalue())
    assert "dev [v2] [/b] :key: \\x1b]0;title" in shown and "\033]0" not in shown
