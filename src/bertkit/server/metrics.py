"""Prometheus metrics: requests per model, task and length, batches, padding, the queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from bertkit.server.batching import BatchReport
from bertkit.server.jobs import Usage
from bertkit.server.models import ServedModel

LENGTHS = (16, 32, 64, 128, 256, 512)
"""The upper ends of the length buckets, in tokens per input."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The counters of one server with these ``models``; several in one process do not share them."""

    def __init__(self, models: Sequence[ServedModel] = ()) -> None:
        self.registry = registry = CollectorRegistry()
        registry.register(_Padding(models))
        ProcessCollector(registry=registry)  # memory, open files, seconds of the processor
        by_model = ("model", "task")
        by_request = (*by_model, "length", "status")
        self._requests = Counter("bertkit_requests", "Requests answered.", by_request, registry=registry)
        self._seconds = Histogram(
            "bertkit_request_seconds", "Time of a request.", by_model, buckets=_SECONDS, registry=registry
        )
        self._queue_seconds = Histogram(
            "bertkit_queue_seconds", "Time before the first batch.", by_model, buckets=_SECONDS, registry=registry
        )
        self._inputs = Counter("bertkit_inputs", "Inputs.", by_model, registry=registry)
        self._truncated = Counter(
            "bertkit_truncated_inputs", "Inputs that lost their end.", by_model, registry=registry
        )
        by_batch, sizes = ("model",), (1, 2, 4, 8, 16, 32, 64)
        self._batches = Counter("bertkit_batches", "Batches.", by_batch, registry=registry)
        self._batch_requests = Histogram(
            "bertkit_batch_requests", "Requests in a batch.", by_batch, buckets=sizes, registry=registry
        )
        self._batch_seconds = Counter("bertkit_batch_seconds", "Time of the models.", by_batch, registry=registry)
        self._tokens = Counter("bertkit_tokens", "Tokens that models read.", by_batch, registry=registry)
        self.queued_tokens = Gauge("bertkit_queued_tokens", "Tokens that wait, estimated.", registry=registry)
        self.running = Gauge("bertkit_running_requests", "Requests being answered.", registry=registry)

    def observe_batch(self, report: BatchReport) -> None:
        """Count one batch."""
        self._batches.labels(report.model).inc()
        self._batch_requests.labels(report.model).observe(report.requests)
        self._batch_seconds.labels(report.model).inc(report.seconds)
        self._tokens.labels(report.model).inc(report.tokens)

    def observe_request(self, model: str, task: str, status: int, seconds: float, usage: Usage) -> None:
        """Count a request, which took ``seconds``; ``model`` and ``task`` are empty for one that no model has seen."""
        labels = (model or "none", task or "none")
        per_input = usage.tokens / usage.inputs if usage.inputs else 0.0
        length = next((str(end) for end in LENGTHS if per_input <= end), f"over-{LENGTHS[-1]}")
        self._requests.labels(*labels, length if usage.inputs else "none", str(status)).inc()
        if model:
            self._seconds.labels(*labels).observe(seconds)
        if usage.inputs:
            self._inputs.labels(*labels).inc(usage.inputs)
            self._truncated.labels(*labels).inc(usage.truncated_inputs)
            self._queue_seconds.labels(*labels).observe(usage.queue_seconds)

    def render(self) -> bytes:
        """The text that Prometheus reads."""
        return generate_latest(self.registry)


class _Padding(Collector):
    """The padding that models have computed. They count it themselves: it depends on how they divide a batch."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self._models = models

    def collect(self) -> Iterator[CounterMetricFamily]:
        """One number per model."""
        text = "Padding that models computed; transformers compute none."
        family = CounterMetricFamily("bertkit_padding_tokens", text, labels=("model",))
        for model in self._models:
            family.add_metric((model.name,), model.padding_tokens)
        yield family
