"""The thread that makes batches: fair, bounded, and without work that nobody waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

import pytest

from bertkit.server.batching import Batcher, BatchReport
from bertkit.server.errors import ServerError
from bertkit.server.jobs import Encoded, Job, TooLongError
from bertkit.server.limits import Limits
from bertkit.server.model_thread import ModelThread


class Upper:
    """Upper case; it waits until it may run, and keeps what each batch was."""

    def __init__(self) -> None:
        self.may_run = threading.Event()
        self.batches: list[list[str]] = []

    def encode(self, inputs: Sequence[Any]) -> list[Encoded]:
        return [Encoded(text, len(text), num_truncated=max(0, len(text) - 100)) for text in inputs]

    def run(self, inputs: Sequence[Encoded], check: Callable[[], None]) -> list[Any]:
        assert self.may_run.wait(10)
        self.batches.append([each.content for each in inputs])
        if any(each.content == "poison" for each in inputs):
            raise ValueError("poison")
        return [each.content.upper() for each in inputs]


@pytest.fixture
def operation() -> Upper:
    return Upper()


@pytest.fixture
def reports() -> list[BatchReport]:
    return []


@pytest.fixture
def batcher(reports: list[BatchReport]) -> Iterator[Batcher]:
    batcher = Batcher(Limits(batch_tokens=13, queued_tokens=99, window_seconds=0.001), ModelThread(), reports.append)
    batcher.start()
    yield batcher
    batcher.stop()


def job(operation: Upper, *texts: str, seconds: float = 10, truncate: bool = False) -> Job:
    return Job(operation, texts, time.monotonic() + seconds, truncate=truncate)


def occupy(batcher: Batcher, operation: Upper) -> Job:
    """A job that holds the thread, so that what follows has to wait."""
    first = job(operation, "x")
    batcher.submit(first)
    while not first.encoded or first.waiting:
        time.sleep(0.001)
    return first


def test_a_mistake_of_the_loop_is_an_error_of_its_requests_and_the_loop_goes_on(
    batcher: Batcher, operation: Upper, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation.may_run.set()

    def fail(report: BatchReport) -> None:
        raise KeyError("a metric")

    with monkeypatch.context() as changed:
        changed.setattr(batcher, "_observe", fail)
        with pytest.raises(KeyError, match="a metric"):
            batcher.submit(job(operation, "a")).result(10)
    assert batcher.submit(job(operation, "b")).result(10) == ["B"]


class Panic(BaseException):
    """As the tokenizers library raises one: no Exception."""


@pytest.mark.parametrize("part", ["encode", "run", "_observe"])
def test_a_panic_is_an_error_of_its_request_and_the_loop_goes_on(
    batcher: Batcher, operation: Upper, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    operation.may_run.set()

    def fail(*arguments: object) -> None:
        raise Panic("index out of bounds")

    with monkeypatch.context() as changed:
        changed.setattr(batcher if part == "_observe" else operation, part, fail)
        with pytest.raises(RuntimeError, match="index out of bounds"):
            batcher.submit(job(operation, "a")).result(10)
    assert not batcher.has_ended
    assert batcher.submit(job(operation, "b")).result(10) == ["B"]


def test_after_the_end_of_the_loop_work_is_refused(operation: Upper) -> None:
    batcher = Batcher(Limits(), ModelThread())
    batcher.start()
    batcher.stop()
    with pytest.raises(ServerError, match="stopping"):
        batcher.submit(job(operation, "a"))


def test_results_are_in_the_order_of_the_inputs(batcher: Batcher, operation: Upper) -> None:
    operation.may_run.set()
    assert batcher.submit(job(operation, "a", "ccc", "bb")).result(10) == ["A", "CCC", "BB"]
    assert batcher.queued_tokens == 0


def test_small_requests_pass_between_the_batches_of_a_large_one(batcher: Batcher, operation: Upper) -> None:
    occupy(batcher, operation)
    large = batcher.submit(job(operation, *["l" * 6] * 4))
    small = [batcher.submit(job(operation, name)) for name in ("s", "t")]
    operation.may_run.set()
    assert large.result(10) == ["L" * 6] * 4
    assert [each.result(10) for each in small] == [["S"], ["T"]]
    assert operation.batches[1] == ["llllll", "s", "t"]


def test_a_request_that_a_batch_has_no_room_for_is_the_first_of_the_next(batcher: Batcher, operation: Upper) -> None:
    occupy(batcher, operation)
    large = [batcher.submit(job(operation, *[letter * 6] * 5)) for letter in "abcd"]
    small = batcher.submit(job(operation, "s"))
    operation.may_run.set()
    assert small.result(10) == ["S"]
    for each in large:
        each.result(10)
    assert operation.batches[1:3] == [["a" * 6, "b" * 6], ["c" * 6, "d" * 6, "s"]]


def test_a_batch_has_its_tokens_at_most_unless_one_input_has_more(batcher: Batcher, operation: Upper) -> None:
    operation.may_run.set()
    texts = ["a" * 20, "b" * 7, "c" * 6, "d" * 5, "e"]
    assert batcher.submit(job(operation, *texts)).result(10) == [text.upper() for text in texts]
    sizes = [sum(map(len, batch)) for batch in operation.batches]
    assert sizes[0] == 20
    assert max(sizes[1:]) <= 13


def test_a_full_queue_refuses_and_says_when_to_come_back(batcher: Batcher, operation: Upper) -> None:
    occupy(batcher, operation)
    waiting = batcher.submit(job(operation, "a" * 200))
    with pytest.raises(ServerError) as caught:
        batcher.submit(job(operation, "b" * 200))
    assert (caught.value.status, caught.value.retry_after) != (429, None)
    assert {"retry-after", "retry-after-ms"} <= set(caught.value.headers())
    operation.may_run.set()
    with pytest.raises(TooLongError):
        waiting.result(10)
    assert batcher.submit(job(operation, "c")).result(10) == ["C"]


def test_cancelled_work_is_not_done(batcher: Batcher, operation: Upper) -> None:
    occupy(batcher, operation)
    cancelled, kept = batcher.submit(job(operation, "never")), batcher.submit(job(operation, "kept"))
    assert cancelled.cancel()
    operation.may_run.set()
    assert kept.result(10) == ["KEPT"]
    with pytest.raises(CancelledError):
        cancelled.result(10)
    assert "never" not in [text for batch in operation.batches for text in batch]


def test_work_after_its_deadline_is_not_done(batcher: Batcher, operation: Upper) -> None:
    occupy(batcher, operation)
    late = batcher.submit(job(operation, "late", seconds=0.01))
    time.sleep(0.05)
    operation.may_run.set()
    with pytest.raises(ServerError, match="not answered in time"):
        late.result(10)
    assert ["late"] not in operation.batches


def test_one_request_that_fails_does_not_fail_the_others(batcher: Batcher, operation: Upper) -> None:
    occupy(batcher, operation)
    bad, good = batcher.submit(job(operation, "poison")), batcher.submit(job(operation, "good"))
    operation.may_run.set()
    assert good.result(10) == ["GOOD"]
    with pytest.raises(ValueError, match="poison"):
        bad.result(10)


def test_texts_are_cut_only_if_the_request_allows_it(batcher: Batcher, operation: Upper) -> None:
    operation.may_run.set()
    with pytest.raises(TooLongError) as caught:
        batcher.submit(job(operation, "a", "b" * 103)).result(10)
    assert (caught.value.number, caught.value.given - caught.value.limit) == (1, 3)
    assert batcher.submit(job(operation, "b" * 103, truncate=True)).result(10) == ["B" * 103]


def test_batches_are_reported(batcher: Batcher, operation: Upper, reports: list[BatchReport]) -> None:
    operation.may_run.set()
    batcher.submit(job(operation, "aaa", "b")).result(10)
    while not reports:
        time.sleep(0.001)
    (report,) = reports
    assert (report.requests, report.tokens) == (1, 4)


def test_a_batcher_that_was_never_started_can_be_stopped() -> None:
    Batcher(Limits(), ModelThread()).stop()


def test_a_stopped_batcher_finishes_what_it_has() -> None:
    operation, batcher = Upper(), Batcher(Limits(), ModelThread())
    operation.may_run.set()
    batcher.start()
    done = batcher.submit(job(operation, *["a"] * 50))
    batcher.stop()
    assert done.result(0) == ["A"] * 50


class Endless:
    """One input of endless work, which asks between two parts whether it is still wanted."""

    def __init__(self) -> None:
        self.running = threading.Event()

    def encode(self, inputs: Sequence[Any]) -> list[Encoded]:
        return [Encoded(each, 1) for each in inputs]

    def run(self, inputs: Sequence[Encoded], check: Callable[[], None]) -> list[Any]:
        while True:
            self.running.set()
            check()
            time.sleep(0.001)


def test_running_work_ends_when_its_client_has_left_or_its_time_is_over(batcher: Batcher, operation: Upper) -> None:
    operation.may_run.set()
    endless = Endless()
    left = batcher.submit(Job(endless, ["a"], time.monotonic() + 100))
    assert endless.running.wait(10)
    assert left.cancel()
    late = batcher.submit(Job(endless, ["a"], time.monotonic() + 0.05))
    with pytest.raises(ServerError, match="not answered in time"):
        late.result(10)
    assert batcher.submit(job(operation, "next")).result(10) == ["NEXT"]


def test_an_abandoned_batcher_ends_at_once(operation: Upper) -> None:
    batcher, endless = Batcher(Limits(window_seconds=0.001), ModelThread()), Endless()
    batcher.start()
    running = batcher.submit(Job(endless, ["a"], time.monotonic() + 100))
    assert endless.running.wait(10)
    waiting = batcher.submit(job(operation, "b"))
    batcher.abandon()
    batcher.stop()
    for each in (running, waiting):
        assert isinstance(each.exception(0), ServerError)
