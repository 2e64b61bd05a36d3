"""Exact nearest neighbours of queries among stored vectors, by the cosine.

All vectors are read, in blocks, with one matrix product per block.

Letters: Q queries, K neighbours of each, n vectors of a block, H their width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.errors import count_of, data_error, usage_error, verb_of
from bertkit.inference.embedding_store import EmbeddingRecord, StoredVectors, TextHash
from bertkit.inference.encoder_pipeline import EncoderPipeline
from bertkit.inference.text_column import TextColumn
from bertkit.inference.texts import PlainTexts, check_plain_texts
from bertkit.results import Result, Results

_QUERIES_AT_ONCE = 64
"""A block of vectors of width 384 has 20,000 rows, and 64 queries 30 MB of places and cosines."""

_Best = tuple[NDArray[np.int64], NDArray[np.float32]]
"""The rows (Q, K) with the highest cosines, counted from 0, and these cosines (Q, K)."""


@dataclass(frozen=True, slots=True, repr=False)
class Neighbour(Result):
    """A stored vector: its ``row``, counted from 1, the cosine with the query, and the ``text`` if it is known.

    ``query`` is None where there is only one.
    """

    row: int
    score: float
    text: str | None = None
    query: str | None = None


def search(
    stored: StoredVectors, query: PlainTexts, pipeline: EncoderPipeline, *, top_k: int = 10
) -> Results[Neighbour]:
    """The ``top_k`` vectors with the highest cosine, query after query; of equal ones the first.

    Vectors of another model are an error.
    """
    record = stored.record
    for part, stored_part, own_part in (
        ("model", record.encoder, pipeline.encoder_fingerprint),
        ("tokenizer", record.tokenizer, pipeline.tokenizer.fingerprint),
    ):
        if stored_part != own_part:
            raise usage_error(
                f"{stored.path} was made with another {part} than {pipeline.folder}: their vectors cannot be compared."
            )
    settings = record.settings
    texts = check_plain_texts(query, "query")
    vectors = pipeline.embed(texts, settings.pool, layers=settings.layers, normalize=True)
    found: Results[Neighbour] = Results()
    for text, rows, scores in zip(texts, *_highest(stored, vectors, top_k), strict=True):
        of = None if isinstance(query, str) else text
        found += [Neighbour(int(row) + 1, float(score), query=of) for row, score in zip(rows, scores, strict=True)]
    return found


def add_texts(neighbours: Sequence[Neighbour], source: TextColumn, record: EmbeddingRecord) -> Results[Neighbour]:
    """The neighbours with their texts, which are in the rows of ``source``; a file of other texts is an error."""
    wanted = {neighbour.row for neighbour in neighbours}
    found: dict[int, str] = {}
    texts = TextHash()
    for text in source.texts():
        texts.add(text)
        if texts.count in wanted:
            found[texts.count] = text
    if texts.count != record.rows:
        raise data_error(
            f"{source.path} has {count_of(texts.count, 'text')}, and there {verb_of(record.rows, 'is', 'are')} "
            f"{count_of(record.rows, 'vector')}: the vectors are of another file."
        )
    if record.texts_sha256 not in ("", texts.hexdigest()):
        raise data_error(f"{source.path} has other texts, or another order, than when it was embedded. Embed it again.")
    return Results([replace(each, text=found[each.row]) for each in neighbours])


def _highest(stored: StoredVectors, queries: NDArray[np.float32], top_k: int) -> _Best:
    """The rows (Q, K), counted from 0, of the ``top_k`` highest cosines with ``queries`` (Q, H), and these (Q, K)."""
    parts = [queries[start : start + _QUERIES_AT_ONCE] for start in range(0, max(len(queries), 1), _QUERIES_AT_ONCE)]
    best: list[_Best] = [
        (np.empty((len(part), 0), dtype=np.int64), np.empty((len(part), 0), dtype=np.float32)) for part in parts
    ]
    first = 0
    for block in stored.blocks():
        lengths = _measure(block, stored.path, first)
        for place, part in enumerate(parts):
            best[place] = _merge(best[place], _cosines(block, part, lengths), first, top_k)
        first += len(block)
    return np.concatenate([rows for rows, _ in best]), np.concatenate([scores for _, scores in best])


def _measure(block: NDArray[np.float32], path: Path, first: int) -> NDArray[np.float32]:
    """The lengths (n,) of the rows; 1 for a row of zeros, whose cosine with everything is then 0."""
    lengths = np.sqrt(np.einsum("nh,nh->n", block, block))
    if not np.isfinite(lengths).all():
        row = first + int(np.argmin(np.isfinite(lengths))) + 1
        raise data_error(f"{path}, row {row:,}: a number is not finite. Make it again with: bertkit embed")
    return np.where(lengths == 0, np.float32(1), lengths)


def _cosines(
    block: NDArray[np.float32], queries: NDArray[np.float32], lengths: NDArray[np.float32]
) -> NDArray[np.float32]:
    """The cosines (Q, n) of ``queries`` (Q, H), which have length 1, with each row."""
    return np.asarray((queries @ block.T / lengths).clip(-1, 1))


def _merge(best: _Best, cosines: NDArray[np.float32], first: int, top_k: int) -> _Best:
    """The ``top_k`` highest of ``best`` and of ``cosines`` (Q, n), which are those of the rows from ``first`` on."""
    rows, scores = best
    scores = np.hstack([scores, cosines])
    rows = np.hstack([rows, np.tile(np.arange(first, first + cosines.shape[1]), (len(cosines), 1))])
    if scores.shape[1] > top_k:  # only rows that are among the highest of some query are sorted: 18 times as fast
        least = np.partition(scores, -top_k, axis=1)[:, [-top_k]]
        kept = (scores >= least).any(axis=0)
        rows, scores = rows[:, kept], scores[:, kept]
    order = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)
