"""Exact nearest neighbours of a query among stored vectors, by the cosine.

Every query reads all vectors, in blocks, as one matrix product per block.

Letters: N vectors, n vectors of a block, H their width.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertkit.errors import count_of, data_error, usage_error, verb_of
from bertkit.inference.embedding_store import EmbeddingRecord, StoredVectors, TextHash
from bertkit.inference.encoder_pipeline import EncoderPipeline, describe_vectors
from bertkit.inference.text_column import TextColumn
from bertkit.inference.texts import check_plain_texts
from bertkit.results import Result, Results


@dataclass(frozen=True, slots=True, repr=False)
class Neighbour(Result):
    """A stored vector: its ``row``, counted from 1, the cosine with the query, and the ``text`` if it is known."""

    row: int
    score: float
    text: str | None = None


def search(stored: StoredVectors, query: str, pipeline: EncoderPipeline, *, top_k: int = 10) -> Results[Neighbour]:
    """The ``top_k`` vectors with the highest cosine; of equal ones the first. Vectors of another model are an error."""
    record = stored.record
    own = describe_vectors(pipeline, record.settings, rows=record.rows, text=record.text)
    for part, stored_part, own_part in (
        ("model", record.encoder, own.encoder),
        ("tokenizer", record.tokenizer, own.tokenizer),
    ):
        if stored_part != own_part:
            raise usage_error(
                f"{stored.path} was made with another {part} than {pipeline.folder}: their vectors cannot be compared."
            )
    settings = record.settings
    (vector,) = pipeline.embed(check_plain_texts(query, "query"), settings.pool, layers=settings.layers, normalize=True)
    rows, scores = _highest(stored, vector, top_k)
    return Results([Neighbour(int(row) + 1, float(score)) for row, score in zip(rows, scores, strict=True)])


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


def _highest(
    stored: StoredVectors, vector: NDArray[np.float32], top_k: int
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The rows, counted from 0, of the ``top_k`` highest cosines, and these."""
    rows, scores = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    first = 0
    for block in stored.blocks():
        cosines = _cosines(block, vector, stored.path, first)
        rows = np.concatenate([rows, np.arange(first, first + len(block))])
        scores = np.concatenate([scores, cosines])
        order = np.argsort(-scores, kind="stable")[:top_k]
        rows, scores = rows[order], scores[order]
        first += len(block)
    return rows, scores


def _cosines(block: NDArray[np.float32], vector: NDArray[np.float32], path: Path, first: int) -> NDArray[np.float32]:
    """The cosine (n) of each row with ``vector``, which has length 1; 0 for a row of zeros."""
    products = block @ vector
    lengths = np.sqrt(np.einsum("nh,nh->n", block, block))
    if not np.isfinite(lengths).all():
        row = first + int(np.argmin(np.isfinite(lengths))) + 1
        raise data_error(f"{path}, row {row:,}: a number is not finite. Make it again with: bertkit embed")
    return np.asarray((products / np.where(lengths == 0, 1, lengths)).clip(-1, 1))
