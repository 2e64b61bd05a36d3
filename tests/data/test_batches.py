"""Order and company of examples."""

from __future__ import annotations

import numpy as np
import pytest

from bertkit.contracts import Feature
from bertkit.data.batches import FeatureSource, batch_indices, batches_in_epoch


def source(count: int) -> FeatureSource:
    lengths = np.random.default_rng(0).integers(3, 60, count)
    features = [Feature(np.full(length, index), np.zeros(length, int)) for index, length in enumerate(lengths)]
    return FeatureSource(features, pad_id=0)


def epoch(examples: FeatureSource, size: int, *, seed: int = 1, number: int = 0) -> list[list[int]]:
    steps = range(batches_in_epoch(examples, size))
    return [batch_indices(examples, size, seed=seed, epoch=number, step=step).tolist() for step in steps]


@pytest.mark.parametrize("count", [1, 7, 13, 700, 1399])
def test_an_epoch_sees_every_example_once(count: int) -> None:
    seen = [index for batch in epoch(source(count), 13) for index in batch]
    assert sorted(seen) == list(range(count))


def test_epochs_and_seeds_differ() -> None:
    examples = source(700)
    assert epoch(examples, 13) == epoch(examples, 13)
    assert epoch(examples, 13) != epoch(examples, 13, number=1)
    assert epoch(examples, 13) != epoch(examples, 13, seed=2)


def test_batches_hold_their_features() -> None:
    batch = source(99).batch(5, np.array([42, 7]))
    assert batch.input_ids[:, 0].tolist() == [42, 7]
