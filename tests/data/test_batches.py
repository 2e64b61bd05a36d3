"""The order of examples, batches of features, and prefetching."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np
import pytest

from bertkit.batch import Feature
from bertkit.data.batches import FeatureSource, batch_indices, batches_in_epoch, prefetch


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


@pytest.mark.parametrize("workers", [0, 1, 3, 20])
def test_prefetched_results_come_in_order(workers: int) -> None:
    assert list(prefetch((partial(pow, each, 2) for each in range(13)), workers)) == [each**2 for each in range(13)]


def test_the_next_result_is_computed_while_the_caller_works() -> None:
    made = [threading.Event() for _ in range(3)]
    results = prefetch((event.set for event in made), 1)
    next(results)
    assert made[1].wait(timeout=60)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_an_exception_is_raised_in_place_of_its_result(workers: int) -> None:
    results = prefetch((partial(divmod, 7, each) for each in (7, 3, 0, 1)), workers)
    assert [next(results), next(results)] == [(1, 0), (2, 1)]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_no_thread_is_left_after_closing() -> None:
    before = threading.active_count()
    results = prefetch((partial(pow, each, 2) for each in range(99)), 3)
    next(results)
    results.close()
    assert threading.active_count() == before
