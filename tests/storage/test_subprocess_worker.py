"""A function that is called in another process: results, state, output, death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from bertkit.storage.subprocess_worker import SubprocessWorker, WorkerDiedError


def negate(number: int) -> int:
    return -number


def test_results_come_in_the_order_of_the_calls() -> None:
    with SubprocessWorker(negate) as worker:
        assert [worker.call(number) for number in range(7)] == [0, -1, -2, -3, -4, -5, -6]


class Total:
    """Adds up its arguments."""

    total = 0

    def __call__(self, number: int) -> int:
        self.total += number
        return self.total


def test_the_function_keeps_its_state_between_calls() -> None:
    total = Total()
    with SubprocessWorker(total) as worker:
        assert [worker.call(number) for number in (3, 4, 5)] == [3, 7, 12]
    assert total.total == 0, "it was called in another process"


def test_the_environment_is_that_of_the_parent_and_what_is_added() -> None:
    with SubprocessWorker(os.getenv, environment={"WORKER_TEST": "seven"}) as worker:
        assert worker.call("WORKER_TEST") == "seven"
        assert worker.call("PATH") == os.environ["PATH"]
    assert "WORKER_TEST" not in os.environ


def test_a_process_that_is_killed_is_an_error_with_its_exit_code() -> None:
    with SubprocessWorker(negate) as worker:
        assert worker.call(1) == -1
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError) as caught:
            worker.call(2)
    assert caught.value.exit_code == -signal.SIGKILL
    assert str(caught.value) == "exit code -9"


def test_an_exception_of_the_function_ends_the_process() -> None:
    with SubprocessWorker(negate, quiet=True) as worker, pytest.raises(WorkerDiedError, match="exit code 1"):
        worker.call("text")  # type: ignore[arg-type]


def test_what_the_function_prints_does_not_disturb_its_results(capfd: pytest.CaptureFixture[str]) -> None:
    for quiet, printed in ((False, "some text\n"), (True, "")):
        with SubprocessWorker(print, quiet=quiet) as worker:
            assert worker.call("some text") is None
        assert capfd.readouterr() == ("", printed)


def test_an_error_of_the_parent_kills_the_process() -> None:
    with pytest.raises(KeyboardInterrupt), SubprocessWorker(time.sleep) as worker:
        raise KeyboardInterrupt
    assert worker._process.returncode == -signal.SIGKILL


def test_the_process_ends_with_its_parent() -> None:
    program = """
import operator, os
from bertkit.storage.subprocess_worker import SubprocessWorker
worker = SubprocessWorker(operator.neg)
worker.call(1)
print(worker.pid, flush=True)
os._exit(0)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    for _ in range(100):
        try:
            os.kill(int(ran.stdout), 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("the worker outlives its parent")


def test_the_main_module_of_the_parent_is_not_imported_again() -> None:
    """A script without a main guard, read from standard input, has workers."""
    program = """
import operator
from bertkit.storage.subprocess_worker import SubprocessWorker
with SubprocessWorker(operator.neg) as worker:
    print(worker.call(7))
"""
    ran = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, check=True)
    assert ran.stdout == "-7\n"


def path_and_command(argument: None) -> tuple[str, list[str]]:
    return sys.path[-1], sys.argv


def test_the_process_has_the_search_path_and_the_command_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, "/nowhere/at all"])
    monkeypatch.setattr(sys, "argv", ["bertkit", "quickstart"])
    with SubprocessWorker(path_and_command) as worker:
        assert worker.call(None) == ("/nowhere/at all", ["bertkit", "quickstart"])
