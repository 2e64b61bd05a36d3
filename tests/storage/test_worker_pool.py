"""Several processes that call one function."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import CancelledError

import pytest

from bertkit.errors import BertkitError
from bertkit.storage.subprocess_worker import WorkerDiedError
from bertkit.storage.worker_pool import WorkerPool


def identify(number: int) -> tuple[int, int]:
    time.sleep(0.01)
    return number, os.getpid()


def halve(number: int) -> int:
    if number % 2:
        raise BertkitError(f"{number} is odd.")
    return number // 2


def test_all_processes_work_and_every_argument_has_its_result() -> None:
    with WorkerPool(identify, 3) as pool:
        results = [future.result() for future in [pool.submit(number) for number in range(60)]]
        assert [number for number, _ in results] == list(range(60))
        assert {pid for _, pid in results} == {worker.pid for worker in pool.workers}


def test_the_environment_is_that_of_every_process() -> None:
    with WorkerPool(os.getenv, 2, environment={"POOL_TEST": "seven"}) as pool:
        assert [pool.submit("POOL_TEST").result() for _ in range(4)] == ["seven"] * 4


def test_an_error_about_the_files_of_a_user_is_raised_and_its_process_goes_on() -> None:
    with WorkerPool(halve, 1) as pool:
        with pytest.raises(BertkitError, match="7 is odd"):
            pool.submit(7).result()
        assert pool.submit(8).result() == 4


def test_a_process_that_is_killed_is_an_error_of_its_call() -> None:
    with WorkerPool(identify, 1) as pool:
        pool.submit(0).result()
        os.kill(pool.workers[0].pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match="exit code -9"):
            pool.submit(1).result()


def test_an_exception_ends_the_processes_in_the_middle_of_their_calls() -> None:
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt), WorkerPool(time.sleep, 2) as pool:
        futures = [pool.submit(60) for _ in range(5)]
        raise KeyboardInterrupt
    assert time.monotonic() - begin < 30
    for future in futures:
        with pytest.raises((WorkerDiedError, CancelledError)):
            future.result()
