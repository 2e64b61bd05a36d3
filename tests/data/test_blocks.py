"""Blocks: how text is divided into them, and which are held out."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from bertkit.data.blocks import block_characters, choose_limit, cut_blocks
from bertkit.data.document_hash import KEYS

SENTENCES = [f"Sentence {number} of a text." for number in range(301)]


def random_keys(count: int, seed: int) -> list[int]:
    generator = random.Random(seed)
    return [generator.randrange(KEYS) for _ in range(count)]


def held_out(keys: list[int], tokens: list[int], heldout: float) -> float:
    """The share of the tokens that is held out."""
    limit = choose_limit(keys, tokens, heldout)
    return sum(size for key, size in zip(keys, tokens, strict=True) if key < limit) / sum(tokens)


def test_blocks_hold_all_sentences_in_order() -> None:
    blocks = cut_blocks(SENTENCES, 1000)
    assert (blocks[0].begin, blocks[-1].end) == (0, 301)
    assert all(first.end == second.begin for first, second in pairwise(blocks))
    sizes = [sum(map(len, SENTENCES[block.begin : block.end])) for block in blocks]
    assert len(blocks) == sum(sizes) // 1000
    assert max(sizes) - min(sizes) < 60


def test_a_short_text_is_one_block_and_no_text_is_none() -> None:
    assert [(block.begin, block.end) for block in cut_blocks(SENTENCES, 5000)] == [(0, 301)]
    assert cut_blocks([], 500) == []


def test_a_long_sentence_is_not_divided() -> None:
    blocks = cut_blocks(["a" * 2000, "b" * 10, "c" * 2000], 100)
    assert (blocks[0].begin, blocks[0].end) == (0, 1)
    assert blocks[-1].end == 3
    assert all(block.begin < block.end for block in blocks)


def test_copies_have_the_same_keys_and_other_texts_have_others() -> None:
    first, second = (cut_blocks(list(SENTENCES), 1000) for _ in range(2))
    assert first == second
    assert len({block.key for block in first}) == len(first)
    assert all(0 <= block.key < KEYS for block in first)


def test_blocks_are_long_enough_for_a_row() -> None:
    assert block_characters(1000, 0.01) == 500
    assert block_characters(3_200_000_000, 0.01) == 1_000_000


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("count", "share"), [(100, 0.05), (1000, 0.01), (300, 0.2), (50_000, 0.01)])
def test_about_the_share_of_the_tokens_is_held_out(count: int, share: float, seed: int) -> None:
    tokens = np.random.default_rng(seed).integers(50, 150, size=count).tolist()
    assert share * 0.7 < held_out(random_keys(count, seed), tokens, share) < share * 1.4


def test_the_limit_does_not_depend_on_the_corpus_where_there_are_many_blocks() -> None:
    assert choose_limit(random_keys(50_000, 0), [100] * 50_000, 0.01) == int(0.01 * KEYS)


def test_at_least_two_blocks_are_held_out() -> None:
    assert held_out(random_keys(40, 0), [100] * 40, 0.001) == pytest.approx(0.05)


def test_nothing_is_held_out_of_a_tiny_corpus() -> None:
    """Two blocks would be more than a quarter of it."""
    for count in (1, 2, 3, 7):
        assert choose_limit(random_keys(count, 0), [100] * count, 0.01) == 0
    assert choose_limit([7] * 50, [100] * 50, 0.01) == 0, "copies of one block"


@pytest.mark.parametrize("share", [0.5, 0.9999])
def test_a_block_is_left_for_training(share: float) -> None:
    for count in (4, 5, 50):
        assert 0 < held_out(random_keys(count, 0), [100] * count, share) < 1


def test_copies_are_in_the_same_split() -> None:
    keys = random_keys(20, 0) * 3
    limit = choose_limit(keys, [100] * 60, 0.1)
    assert sum(key < limit for key in keys) == 6


def test_nothing_is_held_out_on_request() -> None:
    assert choose_limit([0, 1, 2], [100] * 3, 0.0) == 0
