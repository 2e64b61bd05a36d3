from __future__ import annotations

from bertkit.server.jobs import Job
from bertkit.server.models import Embeddings


def test_the_cost_grows_with_the_characters() -> None:
    operation = Embeddings.__new__(Embeddings)
    short, long = (Job(operation, texts, 0.0) for texts in (["a"], ["a" * 300, "b"]))
    assert 0 < short.cost < 5
    assert 100 < long.cost < 110
