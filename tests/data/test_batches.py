"""Order and company of examples."""

from __future__ import annotations

import numpy as np
import pytest

from bertkit.contracts import Feature
from bertkit.data.batches import FeatureSource, batch_indices, batches_in_epoch


def source(count: int, *, alike: bool = False) -> FeatureSource:
    lengths = np.random.default_rng(0).integers(3, 60, count)
    features = [Feature(np.full(length, index), np.zeros(length, int)) for index, length in enumerate(lengths)]
    made = FeatureSource(features, pad_id=0)
    if alike:
        made.lengths = None
    return made


def epoch(examples: FeatureSource, size: int, *, seed: int = 1, number: int = 0) -> list[list[int]]:
    steps = range(batches_in_epoch(examples, size))
    return [batch_indices(examples, size, seed=seed, epoch=number, step=step).tolist() for step in steps]


@pytest.mark.parametrize("count", [1, 7, 13, 700, 1399])
@pytest.mark.parametrize("alike", [True, False])
def test_an_epoch_sees_every_example_once(count: int, alike: bool) -> None:
    seen = [index for batch in epoch(source(count, alike=alike), 13) for index in batch]
    assert sorted(seen) == list(range(count))


@pytest.mark.parametrize("alike", [True, False])
def test_epochs_and_seeds_differ(alike: bool) -> None:
    examples = source(700, alike=alike)
    assert epoch(examples, 13) == epoch(examples, 13)
    assert epoch(examples, 13) != epoch(examples, 13, number=1)
    assert epoch(examples, 13) != epoch(examples, 13, seed=2)


def test_similar_lengths_share_a_batch() -> None:
    examples = source(1400)
    assert examples.lengths is not None
    real = int(examples.lengths.sum())
    padded = sum(int(examples.lengths[batch].max()) * len(batch) for batch in epoch(examples, 13))
    assert real / padded > 0.95


def test_length_order_is_not_batch_order() -> None:
    examples = source(650)
    assert examples.lengths is not None
    means = [examples.lengths[batch].mean() for batch in epoch(examples, 13)]
    assert means != sorted(means)


def test_batches_hold_their_features() -> None:
    batch = source(99).batch(5, np.array([42, 7]))
    assert batch.input_ids[:, 0].tolist() == [42, 7]
