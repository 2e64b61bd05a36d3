"""Counter-based random numbers: pure, uniform, and independent of the other rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.rng import CounterRng, permute


def make_rng(*indices: int, seed: int = 7, epoch: int = 3) -> CounterRng:
    return CounterRng(seed, epoch, np.array(indices, dtype=np.int64))


def test_a_row_does_not_depend_on_the_other_rows() -> None:
    together = make_rng(5, 99, 13).uniform("a", 37)
    assert (together[2] == make_rng(13).uniform("a", 37)[0]).all()


@pytest.mark.parametrize("other", [make_rng(13, seed=8), make_rng(13, epoch=4), make_rng(14)])
def test_seed_epoch_and_index_all_matter(other: CounterRng) -> None:
    assert (make_rng(13).uniform("a", 37) != other.uniform("a", 37)).all()


def test_streams_differ() -> None:
    assert (make_rng(13).uniform("a", 37) != make_rng(13).uniform("b", 37)).all()


def test_numbers_are_uniform_and_uncorrelated() -> None:
    numbers = CounterRng(1, 0, np.arange(1000)).uniform("x", 100)
    counts, _ = np.histogram(numbers, bins=20, range=(0, 1))
    # 5,000 per bin with a standard deviation of 69; the bound is five of them.
    assert abs(counts - 5000).max() < 350
    assert abs(np.corrcoef(numbers[:, 0], numbers[:, 1])[0, 1]) < 0.15
    assert abs(np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]) < 0.02


def test_below_covers_its_range_row_by_row() -> None:
    limits = np.array([1, 2, 13])
    integers = make_rng(0, 1, 2).below("b", limits, 200)
    assert [sorted(set(row.tolist())) for row in integers] == [list(range(limit)) for limit in limits]


@given(size=st.integers(1, 3000), seed=st.integers(0, 2**40), epoch=st.integers(0, 99))
def test_permute_is_a_permutation(size: int, seed: int, epoch: int) -> None:
    shuffled = permute(np.arange(size), size, seed=seed, epoch=epoch)
    assert sorted(shuffled.tolist()) == list(range(size))


def test_permute_shuffles_every_epoch_differently() -> None:
    first, second = (permute(np.arange(999), 999, seed=1, epoch=epoch) for epoch in (0, 1))
    assert (first == second).mean() < 0.02
    assert (first == np.arange(999)).mean() < 0.02


def test_values_are_pinned() -> None:
    """Other values would change the masks and the order of examples in every resumed run."""
    assert make_rng(13).uniform("a", 2).tolist() == [[0.28041914599840156, 0.2737415574866183]]
    assert permute(np.arange(5), 99, seed=1, epoch=2).tolist() == [2, 87, 84, 56, 79]
