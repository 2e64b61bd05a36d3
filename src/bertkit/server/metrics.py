"""Prometheus metrics: requests per task and length, batches, padding, the queue."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from bertkit.server.batching import BatchReport

LENGTHS = (16, 32, 64, 128, 256, 512)
"""The upper ends of the length buckets, in tokens per input."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counters of one server; several in one process do not share them."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        by_request = ("task", "length", "status")
        self._requests = Counter("bertkit_requests", "Requests answered.", by_request, registry=registry)
        self._seconds = Histogram(
            "bertkit_request_seconds", "Time of a request.", ("task",), buckets=_SECONDS, registry=registry
        )
        self._queue_seconds = Histogram(
            "bertkit_queue_seconds", "Time before the first batch.", ("task",), buckets=_SECONDS, registry=registry
        )
        self._inputs = Counter("bertkit_inputs", "Inputs.", ("task",), registry=registry)
        self._truncated = Counter(
            "bertkit_truncated_inputs", "Inputs that lost their end.", ("task",), registry=registry
        )
        self._batches = Counter("bertkit_batches", "Batches.", registry=registry)
        self._batch_requests = Histogram(
            "bertkit_batch_requests", "Requests in a batch.", buckets=(1, 2, 4, 8, 16, 32, 64), registry=registry
        )
        self._batch_seconds = Counter("bertkit_batch_seconds", "Time of the models.", registry=registry)
        self._tokens = Counter("bertkit_tokens", "Tokens that models read.", registry=registry)
        self._padding = Counter("bertkit_padding_tokens", "Padding if a batch is one rectangle.", registry=registry)
        self.queued_tokens = Gauge("bertkit_queued_tokens", "Tokens that wait, estimated.", registry=registry)
        self.running = Gauge("bertkit_running_requests", "Requests being answered.", registry=registry)

    def observe_batch(self, report: BatchReport) -> None:
        """Count one batch."""
        self._batches.inc()
        self._batch_requests.observe(report.requests)
        self._batch_seconds.inc(report.seconds)
        self._tokens.inc(report.tokens)
        self._padding.inc(report.padded_tokens - report.tokens)

    def observe_request(self, task: str, status: int, *, tokens_per_input: float, inputs: int, truncated: int) -> None:
        """Count one request; ``task`` is empty for a request that no model has seen."""
        length = next((str(end) for end in LENGTHS if tokens_per_input <= end), f"over-{LENGTHS[-1]}")
        self._requests.labels(task or "none", length if inputs else "none", str(status)).inc()
        if inputs:
            self._inputs.labels(task).inc(inputs)
            self._truncated.labels(task).inc(truncated)

    def observe_times(self, task: str, *, total: float, queue: float) -> None:
        """Record the seconds of a request that a model has answered."""
        self._seconds.labels(task).observe(total)
        self._queue_seconds.labels(task).observe(queue)

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)
