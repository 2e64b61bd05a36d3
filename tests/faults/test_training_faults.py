"""Trainings that are killed, stopped by a signal or started twice have the same result, bit for bit.

Every disturbed run is compared with an undisturbed one: weights, optimizer, random state, model, record, and the log,
in which every step stands once.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.interruptible_run import SIGNALS, TinyRun, outcome

from bertkit.checkpoint import training_state as store
from bertkit.pretraining import heldout
from bertkit.runs import read_metrics

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.usefixtures("without_shape_checks", "quick"),
]

Outcome = dict[str, Any]
Before = Callable[[], None]


def long(number: int) -> Any:
    """A number of repetitions for ``make test-faults`` only."""
    return pytest.param(number, marks=pytest.mark.faults)


@pytest.mark.parametrize("kills", [6, long(200)])
def test_a_run_that_is_killed_at_any_time_resumes_to_the_same_result(
    bench: TinyRun, tmp_path: Path, expected: Outcome, seconds: float, kills: int
) -> None:
    draw = random.Random(13)
    killed = 0
    while killed < kills:
        run, limit = tmp_path / f"run-{killed}", seconds
        while True:
            child = bench.start(bench.next_command(run))
            time.sleep(draw.uniform(0, limit))
            os.kill(child.pid, signal.SIGKILL)
            if child.wait() == 0:
                break
            killed += 1
            limit *= 1.1  # on a machine that has become slower than it was, it must get to the end as well
        assert outcome(run) == expected


@pytest.mark.parametrize("stops", [4, long(50)])
def test_one_or_two_signals_at_any_time_lose_nothing(
    bench: TinyRun, tmp_path: Path, expected: Outcome, seconds: float, stops: int
) -> None:
    draw = random.Random(7)
    stopped = 0
    while stopped < stops:
        run, limit = tmp_path / f"run-{stopped}", seconds
        while True:
            child = bench.start(bench.next_command(run))
            time.sleep(draw.uniform(0, limit))
            number = draw.choice(SIGNALS)
            os.kill(child.pid, number)
            if draw.random() < 0.5:
                time.sleep(draw.uniform(0, 0.02))
                os.kill(child.pid, number)
            code = child.wait()
            assert "Traceback" not in child.read_stderr()
            if code == 0:
                break
            assert code == 128 + number, child.read_stderr()
            stopped += 1
            limit *= 1.1
        # Which checkpoints are left depends on where it stopped, as it saves there.
        assert {**outcome(run), "kept": None} == {**expected, "kept": None}


def signal_at(module: object, name: str, call: int, number: int = signal.SIGTERM, times: int = 1) -> Before:
    """Make the process send itself a signal ``times`` times at one call of a function, counted from 1."""

    def patch() -> None:
        original, calls = getattr(module, name), 0

        def wrapped(*arguments: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            for _ in range(times if calls == call else 0):
                os.kill(os.getpid(), number)
            return original(*arguments, **named)

        setattr(module, name, wrapped)

    return patch


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    ("module", "name"), [(store, "write_checksums"), (heldout, "evaluate_losses")], ids=["save", "evaluation"]
)
def test_a_signal_during_a_save_or_an_evaluation_loses_nothing(
    bench: TinyRun, tmp_path: Path, expected: Outcome, module: object, name: str, times: int
) -> None:
    """After the first signal the run finishes the call and saves; the second ends it at once, and nothing is lost."""
    run = tmp_path / "run"
    code, shown = bench.run(bench.command(run), signal_at(module, name, 2, times=times))
    assert code == 143, shown
    assert ("Resume: bertkit pretrain --resume" in shown) is (times == 1)
    newest, faults = store.latest(run / "checkpoints")
    assert newest is not None
    assert faults == []
    steps = {
        ("write_checksums", 1): 9,
        ("write_checksums", 2): 4,
        ("evaluate_losses", 1): 14,
        ("evaluate_losses", 2): 12,
    }
    assert store.load(newest)[1]["step"] == steps[name, times]
    bench.finish(run)
    assert outcome(run) == expected


@pytest.mark.parametrize(
    ("module", "name"), [(store, "write_checksums"), (heldout, "evaluate_losses")], ids=["save", "evaluation"]
)
def test_a_run_that_is_suspended_and_continued_has_the_same_result(
    bench: TinyRun, tmp_path: Path, expected: Outcome, module: object, name: str
) -> None:
    """SIGSTOP and SIGCONT, as Ctrl-Z and ``fg`` send them."""
    run = tmp_path / "run"
    child = bench.start(bench.command(run), signal_at(module, name, 2, signal.SIGSTOP))
    assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
    time.sleep(0.2)
    os.kill(child.pid, signal.SIGCONT)
    assert child.wait() == 0, child.read_stderr()
    assert outcome(run) == expected


def test_a_signal_to_a_suspended_run_saves_it_when_it_is_continued(
    bench: TinyRun, tmp_path: Path, expected: Outcome
) -> None:
    run = tmp_path / "run"
    child = bench.start(bench.command(run), signal_at(store, "prune", 2, signal.SIGSTOP))
    assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
    os.kill(child.pid, signal.SIGTERM)
    os.kill(child.pid, signal.SIGCONT)
    assert child.wait() == 143, child.read_stderr()
    bench.finish(run)
    assert {**outcome(run), "kept": None} == {**expected, "kept": None}


def test_a_second_run_is_refused_until_the_first_has_ended_or_died(
    bench: TinyRun, tmp_path: Path, expected: Outcome
) -> None:
    run = tmp_path / "run"
    child = bench.start(bench.command(run), signal_at(store, "prune", 2, signal.SIGSTOP))
    try:
        assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
        for words in (bench.command(run), bench.next_command(run)):
            code, shown = bench.run(words)
            assert code == 2
            assert f"run is in use by process {child.pid} on " in shown
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    assert f"process {child.pid} on " in bench.finish(run)
    assert outcome(run) == expected
    code, shown = bench.run(bench.command(run))
    assert code == 2
    assert f"holds a run already. Give --resume {run}" in shown


@pytest.mark.parametrize("times", [1, long(50)])
def test_of_two_runs_started_at_once_one_is_refused(bench: TinyRun, tmp_path: Path, times: int) -> None:
    for number in range(times):
        run = tmp_path / str(number)
        children = [bench.start([*bench.command(run), "steps=2"]) for _ in range(2)]
        codes = [child.wait() for child in children]
        assert sorted(codes) == [0, 2]
        refused = children[codes.index(2)].read_stderr().splitlines()
        assert "is in use by" in refused[-1] or "holds a run already" in refused[-1]
        assert [record["step"] for record in read_metrics(run / "metrics.jsonl")] == [1, 2, 2]
