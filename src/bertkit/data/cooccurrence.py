"""Word embeddings from co-occurrence counts, as first values for the embedding table of an encoder.

How often two tokens occur near each other is counted once over the shards, turned into positive pointwise mutual
information (Levy and Goldberg 2014), and factorised by a randomized SVD (Halko et al. 2011). Tokens that occur in the
same contexts begin training with similar vectors, which a masked language model otherwise learns one by one.

Letters: V vocabulary, C contexts, D dimensions, N tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.data.shards import Corpus, Shard
from bertkit.errors import data_error
from bertkit.optional import load

WINDOW = 3
"""Neighbours on each side that count as context. A window of 6 gave no better table in three times the time."""

_MOST_CONTEXTS = 4096
_MOST_CELLS = 1 << 26
"""Cells of one table of counts: 256 MB as uint32, of which there are two, for the left and the right context."""

_CHUNK_TOKENS = 1 << 23
"""Tokens whose pairs are sorted at a time: 64 MB of pairs."""

_SMOOTHING = 0.75
"""Power of the context frequencies, so that rare contexts do not dominate (Levy et al. 2015, section 3.2)."""

_POWER_ITERATIONS = 3
_SEED = 0
"""The table is cached beside the corpus, so it must not depend on the seed of a run."""

LEAST_TOKENS = 10_000
"""With fewer tokens than this, the counts are mostly zeros and ones and the table is noise."""


@dataclass(frozen=True, eq=False)
class Cooccurrence:
    """How often each token has each of the C most frequent tokens to its left and to its right, and its frequency.

    A neighbour at distance d counts ``6 / d`` times, a whole number for a window of 3, so that sums do not depend on
    their order: shards may be counted in any order and in any number of processes.
    """

    frequency: NDArray[np.int64]
    contexts: NDArray[np.int64]
    left: NDArray[np.uint32]
    right: NDArray[np.uint32]


def count_cooccurrences(corpus: Corpus) -> Cooccurrence:
    """Count the neighbours of every token of a corpus split; neighbours in another document do not count.

    100 M tokens take about 20 s of one core. Raises a data error for a corpus of fewer than ``LEAST_TOKENS`` tokens.
    """
    vocab_size = corpus.manifest.vocab_size
    if corpus.num_tokens < LEAST_TOKENS:
        raise data_error(
            f"{corpus.folder} has {corpus.num_tokens:,} tokens; co-occurrence counts need {LEAST_TOKENS:,} or more."
        )
    frequency = np.zeros(vocab_size, dtype=np.int64)
    for shard in corpus.shards:
        frequency += np.bincount(shard.tokens, minlength=vocab_size)
    width = min(vocab_size, _MOST_CONTEXTS, max(1, _MOST_CELLS // vocab_size))
    contexts = np.argsort(-frequency, kind="stable")[:width]
    columns = np.full(vocab_size, -1, dtype=np.int64)
    columns[contexts] = np.arange(width)
    left, right = (np.zeros(vocab_size * width, dtype=np.uint32) for _ in range(2))
    for first, second, weights in _count_pairs(corpus.shards, vocab_size):
        for table, token, context in ((right, first, second), (left, second, first)):
            column = columns[context]
            known = column >= 0
            # Every pair of a batch is there once, so that this addition loses none.
            table[token[known] * width + column[known]] += weights[known]
    shape = (vocab_size, width)
    return Cooccurrence(frequency, contexts, left.reshape(shape), right.reshape(shape))


def embed_tokens(counts: Cooccurrence, dimensions: int) -> NDArray[np.float32]:
    """(V, D) one vector per token, from the counts: rows of nearly equal length around a mean of zero.

    The singular values enter with the power 1/2. A rare token has a shorter vector, as its counts are noisy: lengths
    are divided by themselves plus a tenth of their mean. Tokens that never occur have the vector zero.
    """
    information = np.concatenate([_mutual_information(side) for side in (counts.left, counts.right)], axis=1)
    rank = min(dimensions, min(information.shape))
    left_vectors, values, _ = load("sklearn.utils.extmath").randomized_svd(
        information, n_components=rank, n_oversamples=32, n_iter=_POWER_ITERATIONS, random_state=_SEED
    )
    vectors = np.zeros((len(information), dimensions), dtype=np.float32)
    vectors[:, :rank] = left_vectors * np.sqrt(values)
    occurs = counts.frequency > 0
    vectors[occurs] -= vectors[occurs].mean(axis=0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= lengths + 0.1 * lengths[occurs].mean() + np.finfo(np.float32).tiny
    vectors[~occurs] = 0.0
    return vectors


def _mutual_information(counts: NDArray[np.uint32]) -> NDArray[np.float32]:
    """(V, C) ``max(0, log(p(token, context) / (p(token) p(context))))`` with smoothed context probabilities."""
    table = counts.astype(np.float32)
    rows = table.sum(axis=1, keepdims=True, dtype=np.float64)
    contexts = table.sum(axis=0, dtype=np.float64) ** _SMOOTHING
    contexts /= max(contexts.sum(), 1.0)
    table /= np.maximum(rows, 1.0).astype(np.float32)
    table /= np.maximum(contexts, np.finfo(np.float32).tiny).astype(np.float32)
    np.maximum(table, 1.0, out=table)
    return np.log(table, out=table)


def _count_pairs(shards: Iterable[Shard], vocab_size: int) -> Iterator[tuple[NDArray[np.int64], ...]]:
    """Distinct pairs at each distance with their weighted counts: (first token, second token, weight)."""
    for tokens, documents, size in _chunks(shards):
        for distance in range(1, WINDOW + 1):
            second = slice(distance, distance + size)
            first = slice(0, len(tokens[second]))
            same = documents[first] == documents[second]
            pairs = (tokens[first] * np.uint64(vocab_size) + tokens[second])[same]
            # Sorting 8 M pairs takes 0.2 s here; counting them by index in a table of 64 M cells takes ten times that.
            pairs.sort()
            starts = np.flatnonzero(np.diff(pairs, prepend=pairs[:1] + np.uint64(1)))
            distinct = pairs[starts].astype(np.int64)
            counts = np.diff(np.append(starts, len(pairs))) * (6 // distance)
            yield distinct // vocab_size, distinct % vocab_size, counts.astype(np.uint32)


def _chunks(shards: Iterable[Shard]) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64], int]]:
    """Tokens (N + WINDOW,) of a part of a shard, the document that each is in, and N: pairs begin in the first N."""
    for shard in shards:
        begins = shard.sentence_offsets[shard.document_offsets]
        for start in range(0, len(shard.tokens), _CHUNK_TOKENS):
            tokens = shard.tokens[start : start + _CHUNK_TOKENS + WINDOW].astype(np.uint64)
            places = np.arange(start, start + len(tokens))
            yield tokens, np.searchsorted(begins, places, side="right"), _CHUNK_TOKENS
