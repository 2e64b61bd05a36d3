from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.data.numbered_corpus import MANIFEST

from bertkit.data import cooccurrence
from bertkit.data.cooccurrence import Cooccurrence, count_cooccurrences, embed_tokens
from bertkit.data.shards import Corpus, Shard
from bertkit.errors import BertkitError

VOCAB = 29


def corpus(documents: list[list[int]], shards: int = 1) -> Corpus:
    """Documents of one sentence each, over a vocabulary of 29."""
    parts = []
    for group in np.array_split(np.arange(len(documents)), shards):
        ends = np.cumsum([0, *(len(documents[number]) for number in group)])
        tokens = np.array([token for number in group for token in documents[number]])
        parts.append(Shard(tokens=tokens, sentence_offsets=ends, document_offsets=np.arange(len(ends))))
    return Corpus(folder=Path("DATA"), manifest=replace(MANIFEST, vocab_size=VOCAB), shards=tuple(parts))


@pytest.fixture
def documents(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    monkeypatch.setattr(cooccurrence, "LEAST_TOKENS", 10)
    random = np.random.default_rng(5)
    return [random.integers(3, 23, size=random.integers(1, 60)).tolist() for _ in range(40)]


def count_slowly(documents: list[list[int]]) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]]]:
    """Weighted counts of (token, context) to the left and to the right, by the definition."""
    left: Counter[tuple[int, int]] = Counter()
    right: Counter[tuple[int, int]] = Counter()
    for document in documents:
        for place, token in enumerate(document):
            for distance in (1, 2, 3):
                if place + distance < len(document):
                    other = document[place + distance]
                    right[token, other] += 6 // distance
                    left[other, token] += 6 // distance
    return left, right


@pytest.mark.parametrize("chunk", [7, 1 << 23])
@pytest.mark.parametrize("shards", [1, 3])
def test_counts_follow_the_definition(
    documents: list[list[int]], shards: int, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cooccurrence, "_CHUNK_TOKENS", chunk)
    counts = count_cooccurrences(corpus(documents, shards))
    for table, expected in zip((counts.left, counts.right), count_slowly(documents), strict=True):
        rows, columns = table.nonzero()
        pairs = zip(rows.tolist(), counts.contexts[columns].tolist(), table[rows, columns].tolist(), strict=True)
        assert {(token, context): count for token, context, count in pairs} == dict(expected)
    assert counts.frequency.tolist() == np.bincount(np.concatenate(documents), minlength=VOCAB).tolist()


def test_only_the_most_frequent_tokens_are_contexts(
    documents: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cooccurrence, "_MOST_CONTEXTS", 4)
    counts = count_cooccurrences(corpus(documents))
    assert counts.left.shape == (VOCAB, 4)
    assert counts.contexts.tolist() == np.argsort(-counts.frequency, kind="stable")[:4].tolist()


def test_tokens_with_the_same_contexts_have_similar_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """5 and 6 occur between 10 to 14, and 7 and 8 between 15 to 19."""
    monkeypatch.setattr(cooccurrence, "LEAST_TOKENS", 10)
    random = np.random.default_rng(3)
    documents = []
    for number in range(400):
        low = 10 + 5 * (number % 2)
        before, after = random.integers(low, low + 5, size=2)
        documents.append([int(before), int(5 + 2 * (number % 2) + random.integers(2)), int(after)])
    vectors = embed_tokens(count_cooccurrences(corpus(documents)), 2)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-9)
    assert unit[5] @ unit[6] > 0.9
    assert unit[7] @ unit[8] > 0.9
    assert unit[5] @ unit[7] < 0.5


def test_vectors_are_deterministic_finite_and_of_the_width(documents: list[list[int]]) -> None:
    counts = count_cooccurrences(corpus(documents))
    vectors = embed_tokens(counts, 77)
    assert vectors.shape == (VOCAB, 77)
    assert np.isfinite(vectors).all()
    assert np.array_equal(vectors, embed_tokens(counts, 77))
    assert not vectors[counts.frequency == 0].any()


def test_a_vocabulary_that_hardly_occurs_gives_finite_vectors() -> None:
    zeros = np.zeros((VOCAB, 3), dtype=np.uint32)
    frequency = np.zeros(VOCAB, dtype=np.int64)
    frequency[4] = 1
    counts = Cooccurrence(frequency, np.arange(3), zeros, zeros)
    assert np.isfinite(embed_tokens(counts, 8)).all()


def test_a_tiny_corpus_is_refused() -> None:
    with pytest.raises(BertkitError, match=r"DATA has 3 tokens; co-occurrence counts need 10,000 or more"):
        count_cooccurrences(corpus([[1, 2, 3]]))
