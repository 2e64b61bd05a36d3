"""What the tests of disturbed trainings start from."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

import pytest
from tests.interruptible_run import TinyRun, outcome, prepare_text

from bertkit.cli import app
from bertkit.pretraining import run as pretraining


def be_quick(patch: pytest.MonkeyPatch) -> None:
    """Without pictures, and without waiting for the disk: the end of a process loses nothing that was written."""
    patch.setattr(pretraining, "plot_training", lambda *arguments: None)
    patch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    be_quick(monkeypatch)


@pytest.fixture(scope="session")
def benches(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, TinyRun]:
    """The pre-training of the short suite, and the one of the long suite."""
    home = tmp_path_factory.mktemp("bench")
    data = prepare_text(home)
    return {
        is_long: TinyRun(data, home, *shape) for is_long, shape in ((False, ("1/12/2", 20)), (True, ("3/32/4", 60)))
    }


@pytest.fixture
def bench(benches: dict[bool, TinyRun], request: pytest.FixtureRequest) -> TinyRun:
    return benches[request.node.get_closest_marker("faults") is not None]


@pytest.fixture
def expected(bench: TinyRun) -> dict[str, Any]:
    """What the run comes to when nothing disturbs it."""
    return run_undisturbed(bench)[0]


@pytest.fixture
def seconds(bench: TinyRun) -> float:
    """How long that takes here."""
    return run_undisturbed(bench)[1]


@functools.cache
def run_undisturbed(bench: TinyRun) -> tuple[dict[str, Any], float]:
    """In this process, so that whatever is loaded late is there in every child, and then in a child by the clock."""
    with pytest.MonkeyPatch.context() as patch:
        be_quick(patch)
        assert app.run([*bench.command(bench.home / f"loaded-{bench.steps}"), "--quiet"]) == 0
        run = bench.home / f"undisturbed-{bench.steps}"
        begin = time.monotonic()
        code, said = bench.run(bench.command(run))
        taken = time.monotonic() - begin
    assert code == 0, said
    found = outcome(run)
    assert found == outcome(bench.home / f"loaded-{bench.steps}")
    steps = [record["step"] for record in found["log"] if record["kind"] == "train"]
    assert steps == list(range(1, bench.steps + 1))
    return found, taken
