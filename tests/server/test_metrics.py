"""Metrics as Prometheus reads them."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.server.running import get, post

from bertkit.server.batching import BatchReport
from bertkit.server.jobs import Usage
from bertkit.server.metrics import Metrics
from bertkit.server.models import ServedModel
from bertkit.server.run import Server


def values(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_are_counted_by_model_task_and_length() -> None:
    metrics = Metrics()
    usage = Usage(inputs=3, tokens=60, truncated_inputs=1, queue_seconds=0.25)
    metrics.observe_request("reviews", "text-classification", 200, 0.5, usage)
    metrics.observe_request("", "", 415, 0.125, Usage())
    metrics.observe_request("reviews", "text-classification", 504, 2.0, Usage())
    found = values(metrics.render().decode())
    labels = ("reviews", "text-classification")
    assert found["bertkit_requests_total", ("200", "32", *labels)] == 1
    assert found["bertkit_requests_total", ("415", "none", "none", "none")] == 1
    assert found["bertkit_inputs_total", labels] == 3
    assert found["bertkit_truncated_inputs_total", labels] == 1
    assert found["bertkit_request_seconds_sum", labels] == 2.5, "also of the request that failed"
    assert found["bertkit_queue_seconds_sum", labels] == 0.25


def test_tokens_are_counted_by_model_and_padding_is_what_the_model_says(
    loaded: list[ServedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    (model,) = models = [each for each in loaded if each.name == "reviews"]
    monkeypatch.setattr(model, "padding_tokens", 7)  # other files of tests ask this model too
    metrics = Metrics(models)
    metrics.observe_batch(BatchReport(model="reviews", requests=2, tokens=10, seconds=0.5))
    assert values(metrics.render().decode())["bertkit_tokens_total", ("reviews",)] == 10
    padding = "bertkit_padding_tokens_total", ("reviews",)
    assert values(metrics.render().decode())[padding] == 7


def test_a_running_server_shows_them(server: Server) -> None:
    before = values(get(server, "/metrics").text)
    assert post(server, "/predict", {"inputs": "the river"}).status_code == 200
    after = values(get(server, "/metrics").text)
    key = "bertkit_requests_total", ("16", "200", "reviews", "text-classification")
    assert after[key] == before.get(key, 0) + 1
    batches = "bertkit_batches_total", ("reviews",)
    assert after[batches] == before.get(batches, 0) + 1
    assert after["bertkit_queued_tokens", ()] == 0
