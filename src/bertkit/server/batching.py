"""The loop in the thread of the models: it takes inputs from all waiting requests in turn and runs them as batches.

A request waits in a queue of limited size. From it, each request in turn gives one input, until a batch has
``batch_tokens`` tokens; a large request therefore takes several batches, and small ones pass between them. Work whose
request was cancelled, or whose deadline is over, is dropped, also in the middle of one input with many windows.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from bertkit.server.errors import ended, overloaded, stopping, too_late
from bertkit.server.jobs import AbandonedError, Job, TooLongError
from bertkit.server.limits import Limits
from bertkit.server.model_thread import ModelThread

_FIRST_RATE = 2000.0
"""Tokens per second that are assumed until a batch was measured."""

_RATE_MEMORY = 0.8
"""The share that earlier batches have in the measured rate, which says when to come back after a 429."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What a batch was: its model's name, its requests and tokens, and its seconds."""

    model: str
    requests: int
    tokens: int
    seconds: float


class Batcher:
    """The queue and its loop in ``thread``. ``observe`` is called after each batch, in that thread."""

    def __init__(
        self, limits: Limits, thread: ModelThread, observe: Callable[[BatchReport], None] = lambda report: None
    ) -> None:
        self._limits = limits
        self._thread = thread
        self._ended: Future[None] | None = None
        self._observe = observe
        self._condition = threading.Condition()
        self._arrived: deque[Job] = deque()
        self._active: list[Job] = []
        self._stopped = self._abandoned = False
        self._last_requests = 1
        self._rate = _FIRST_RATE
        self.queued_tokens = 0

    def start(self) -> None:
        """Start the loop."""
        self._ended = self._thread.submit(self._work)

    @property
    def has_ended(self) -> bool:
        """Whether the loop was started and computes no longer."""
        return self._ended is not None and self._ended.done()

    def stop(self) -> None:
        """End the loop after the batch that it computes."""
        with self._condition:
            self._stopped = True
            self._condition.notify()
        if self._ended is not None:  # the loop did not begin if a model could not be warmed up
            self._ended.result()

    def abandon(self) -> None:
        """End the loop in the middle of a batch; requests that wait get 503."""
        with self._condition:
            self._stopped = self._abandoned = True
            self._condition.notify()

    def submit(self, job: Job) -> Future[list[Any]]:
        """Queue a job; 429 if the queue is full. Any job fits into an empty queue."""
        cost = job.cost
        with self._condition:
            if self._stopped:
                raise stopping()
            if self.has_ended:
                raise ended()
            if self.queued_tokens and self.queued_tokens + cost > self._limits.queued_tokens:
                raise overloaded(min(self.queued_tokens / self._rate, self._limits.seconds))
            self.queued_tokens += cost
            self._arrived.append(job)
            self._condition.notify()
        job.future.add_done_callback(lambda _: self._release(cost))
        return job.future

    def _release(self, cost: int) -> None:
        with self._condition:
            self.queued_tokens -= cost

    def _work(self) -> None:
        try:
            while self._admit():
                jobs = list(self._active)
                try:
                    self._compute()
                except BaseException as error:  # a mistake in this loop: it goes on, and nobody waits for ever
                    self._active = []
                    _fail_all(jobs, error)
        except BaseException as error:
            _fail_all((*self._arrived, *self._active), error)
            raise
        _fail_all((*self._arrived, *self._active), stopping())

    def _compute(self) -> None:
        """Run one batch."""
        self._drop()
        batch, self._active = _choose(self._active, self._limits.batch_tokens)
        if batch:
            self._run(batch)
        self._active = [job for job in self._active if job.waiting and not job.future.done()]

    def _admit(self) -> bool:
        """Wait for work, and tokenize what has arrived; False at the end."""
        with self._condition:
            while not (self._arrived or self._active or self._stopped):
                self._condition.wait()
            if self._last_requests > 1 and not self._active:  # others are likely to come: see ``window_seconds``
                self._condition.wait_for(
                    lambda: len(self._arrived) >= self._last_requests or self._stopped, self._limits.window_seconds
                )
            if self._abandoned:
                return False
            arrived = list(self._arrived)
            self._arrived.clear()
            if self._stopped and not (arrived or self._active):
                return False
        self._active += [job for job in arrived if not job.future.cancelled() and _encode(job)]
        return True

    def _drop(self) -> None:
        """Forget jobs that nobody waits for."""
        now = time.monotonic()
        for job in self._active:
            if now > job.deadline:
                _fail(job, too_late())
        self._active = [job for job in self._active if not job.future.done()]

    def _check(self, jobs: Sequence[Job]) -> None:
        """Raise AbandonedError if every client of a running batch has left or has waited for too long."""
        now = time.monotonic()
        if self._abandoned or all(job.future.done() or now > job.deadline for job in jobs):
            raise AbandonedError

    def _run(self, batch: list[tuple[Job, int]]) -> None:
        begin = time.monotonic()
        inputs = [job.encoded[place] for job, place in batch]
        jobs = list(dict.fromkeys(job for job, _ in batch))
        for job in jobs:
            job.usage.queue_seconds = job.usage.queue_seconds or begin - job.arrived
        try:
            results = list(zip(batch, jobs[0].operation.run(inputs, partial(self._check, jobs)), strict=True))
        except AbandonedError:
            for job in jobs:
                _fail(job, stopping() if self._abandoned else too_late())
            return
        except BaseException as error:
            if len(jobs) > 1:  # find out which request it was: the others are not to suffer
                for each in jobs:
                    self._run([(job, place) for job, place in batch if job is each])
            else:
                _fail(jobs[0], error)
            return
        seconds = time.monotonic() - begin
        self._last_requests = len(jobs)
        tokens = sum(each.num_tokens for each in inputs)
        self._rate = _RATE_MEMORY * self._rate + (1 - _RATE_MEMORY) * tokens / max(seconds, 1e-6)
        # Before the answers are given: a client that has its answer finds the batch in the metrics.
        self._observe(BatchReport(jobs[0].model, len(jobs), tokens, seconds))
        for (job, place), result in results:
            job.results[place] = result
        for job in jobs:
            job.usage.inference_seconds += seconds
            if len(job.results) == len(job.encoded) and job.future.set_running_or_notify_cancel():
                job.future.set_result([job.results[place] for place in range(len(job.encoded))])


def _encode(job: Job) -> bool:
    """Tokenize the inputs of a job; False if it failed, which its future then says."""
    begin = time.monotonic()
    if begin > job.deadline:
        _fail(job, too_late())
        return False
    try:
        job.encoded = job.operation.encode(job.inputs)
        if not job.truncate:
            _refuse_truncated(job)
    except BaseException as error:
        _fail(job, error)
        return False
    job.usage.tokenization_seconds = time.monotonic() - begin
    # The longest inputs first: batches of inputs of similar length need little padding.
    job.waiting.extend(sorted(range(len(job.encoded)), key=lambda place: -job.encoded[place].num_tokens))
    return True


def _choose(active: Sequence[Job], most_tokens: int) -> tuple[list[tuple[Job, int]], list[Job]]:
    """Inputs of the operation that has waited longest, one per request in turn; and the jobs in their new order.

    Requests that the batch has no room for are the first of the next one.
    """
    batch: list[tuple[Job, int]] = []
    if not active:
        return batch, []
    operation = active[0].operation
    tokens = 0
    line = deque(job for job in active if job.operation is operation)
    while line:
        job = line[0]
        size = job.encoded[job.waiting[0]].num_tokens
        if batch and tokens + size > most_tokens:
            break
        batch.append((job, job.waiting.popleft()))
        tokens += size
        line.popleft()
        if job.waiting:
            line.append(job)
    return batch, [job for job in active if job.operation is not operation] + list(line)


def _refuse_truncated(job: Job) -> None:
    for number, each in enumerate(job.encoded):
        if each.num_truncated:
            limit = next(known for known in (each.limit, each.longest_row, each.num_tokens) if known is not None)
            raise TooLongError(number, limit=limit, given=limit + each.num_truncated)


def _fail_all(jobs: Iterable[Job], error: BaseException) -> None:
    for job in jobs:
        if not job.future.done():
            _fail(job, error)


def _fail(job: Job, error: BaseException) -> None:
    """Give the request its error. A panic of Rust in the tokenizer is no Exception, and would pass every handler."""
    if job.future.set_running_or_notify_cancel():
        job.future.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))
