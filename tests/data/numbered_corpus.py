"""A corpus in memory whose tokens are their own positions, so that a test can tell where each one comes from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.data.shards import Corpus, Manifest, Shard

MANIFEST = Manifest(
    tokenizer="",
    vocab_size=0,
    shards=(),
    tokens=0,
    sentences=0,
    documents=0,
    unknown_tokens=0,
    empty_documents=0,
    duplicate_documents=0,
    sources=(),
)


def corpus(*documents: list[int], shards: int = 1) -> Corpus:
    """A corpus of documents given as lengths of sentences; token k of the corpus is the number k."""
    parts, token = [], 0
    for group in np.array_split(np.arange(len(documents)), shards):
        sentences, ends = [0], [0]
        for number in group:
            sentences += (np.cumsum(documents[number]) + sentences[-1]).tolist()
            ends.append(len(sentences) - 1)
        parts.append(
            Shard(
                tokens=np.arange(token, token + sentences[-1]),
                sentence_offsets=np.array(sentences),
                document_offsets=np.array(ends),
            )
        )
        token += sentences[-1]
    return Corpus(folder=Path("DATA"), manifest=MANIFEST, shards=tuple(parts))


def find_starts(*documents: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The positions where sentences and documents begin, and where the corpus ends."""
    sentences = np.cumsum([0, *(length for document in documents for length in document)])
    return sentences, np.cumsum([0, *(sum(document) for document in documents)])


DOCUMENTS = [np.random.default_rng(number).integers(1, 20, 13 + number % 30).tolist() for number in range(41)]
