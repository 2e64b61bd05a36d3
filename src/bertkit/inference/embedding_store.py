"""Files of vectors: an array in NumPy's format with a record beside it, or a column of a Parquet file.

The record says which model made the vectors and how, so that a query is never compared with vectors of another model.
Beside ``vectors.npy`` it is ``vectors.npy.json``; in a Parquet file it is in the metadata of the schema.

Letters: N vectors, H their width.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tokenize import TokenError
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertkit.config.records import from_plain, to_plain
from bertkit.errors import data_error, did_you_mean, usage_error
from bertkit.formats.arrow import open_parquet, require_parquet
from bertkit.inference.embedding import EmbeddingSettings, Vectors
from bertkit.results import Result
from bertkit.storage.checksums import read_checked
from bertkit.storage.json_text import parse_json

FORMATS = (".npy", ".parquet")
COLUMN = "embedding"
"""The column of vectors in a Parquet file."""

BLOCK_BYTES = 1 << 25
"""What is read at a time."""

_METADATA = b"bertkit"
_PARQUET = "vectors in .parquet"
_ADVICE = "Make it again with: bertkit embed"


@dataclass(frozen=True, kw_only=True, repr=False)
class EmbeddingRecord(Result):
    """What made ``rows`` vectors of ``dimension`` numbers from the column ``text`` of a file.

    ``encoder`` and ``tokenizer`` are fingerprints: those of the same weights are equal, wherever they are stored.
    ``vectors_sha256`` and ``texts_sha256`` are hashes of all rows in their order, whatever the format of the files.
    They are empty in files of earlier versions, which are not checked.
    """

    rows: int
    dimension: int
    text: str
    settings: EmbeddingSettings
    max_length: int
    precision: str
    encoder: str
    tokenizer: str
    vectors_sha256: str = ""
    texts_sha256: str = ""
    format: Literal[1] = 1


def check_suffix(output: Path) -> None:
    """Raise a usage error for a file that is neither ``.npy`` nor ``.parquet``, or if pyarrow is missing."""
    suffix = output.suffix.lower()
    if suffix not in FORMATS:
        known = " and ".join(FORMATS)
        raise usage_error(f'{output}: no format named "{suffix}".{did_you_mean(suffix, FORMATS)} There are: {known}.')
    if suffix == ".parquet":
        require_parquet(_PARQUET)


def record_path(vectors: Path) -> Path:
    """The record beside an array."""
    return vectors.with_name(f"{vectors.name}.json")


def hash_vectors(vectors: Vectors) -> str:
    """The SHA-256 of the rows of an array (N, H), in hexadecimal."""
    digest = hashlib.sha256()
    for block in _blocks_of(vectors):
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


class TextHash:
    """Counts texts, and computes the SHA-256 of all of them in their order."""

    def __init__(self) -> None:
        self.count = 0
        self._digest = hashlib.sha256()

    def add(self, text: str) -> None:
        """Add the next text. Its length is hashed too, so that different lists of texts never have the same bytes."""
        data = _encode(text)
        self._digest.update(len(data).to_bytes(8))
        self._digest.update(data)
        self.count += 1

    def hexdigest(self) -> str:
        """The hash of the texts so far."""
        return self._digest.hexdigest()


def _encode(text: str) -> bytes:
    """The text as UTF-8. Half a character, which JSON can spell, has none, and becomes a question mark."""
    return text.encode("utf-8", "replace")


def write_parquet(path: Path, record: EmbeddingRecord, texts: Iterable[str], vectors: Vectors) -> None:
    """Write the columns of texts and of their vectors, block by block."""
    arrow, parquet = require_parquet(_PARQUET)
    metadata = {_METADATA: json.dumps(to_plain(record)).encode()}
    schema = arrow.schema(
        [(record.text, arrow.string()), (COLUMN, arrow.list_(arrow.float32(), record.dimension))], metadata=metadata
    )
    remaining = iter(texts)
    # Vectors do not compress, and the statistics of their numbers are of no use.
    with parquet.ParquetWriter(path, schema, compression="zstd", write_statistics=False) as writer:
        for block in _blocks_of(vectors):
            column = arrow.array([_encode(text) for text in islice(remaining, len(block))], arrow.string())
            rows = arrow.FixedSizeListArray.from_arrays(arrow.array(block.ravel()), record.dimension)
            writer.write_table(arrow.Table.from_arrays([column, rows], schema=schema))


class StoredVectors:
    """An opened file of vectors; ``record`` says what made them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        check_suffix(path)
        if not path.is_file():
            raise usage_error(f"no file of vectors at {path}.")
        self._array: Vectors | None = None
        if path.suffix.lower() == ".npy":
            self._array = _open_array(path)
            self.record = _as_record(_read_sidecar(path), path)
            found = self._array.shape
        else:
            self.record, found = self._open_parquet()
        if found != (self.record.rows, self.record.dimension):
            expected = f"{self.record.rows:,} x {self.record.dimension}"
            raise data_error(f"{path} has {found[0]:,} x {found[1]} numbers, and its record {expected}. {_ADVICE}")

    @property
    def holds_texts(self) -> bool:
        """Whether the file has a column of the texts beside their vectors."""
        return self._array is None

    def blocks(self) -> Iterator[Vectors]:
        """The vectors (n, H) in order, some megabytes at a time; a data error at the end if they have changed."""
        digest = hashlib.sha256()
        for block in self._read_blocks():
            digest.update(np.ascontiguousarray(block).data)
            yield block
        if self.record.vectors_sha256 not in ("", digest.hexdigest()):
            raise data_error(f"{self.path} is damaged: its numbers do not agree with their SHA-256. {_ADVICE}")

    def _read_blocks(self) -> Iterator[Vectors]:
        if self._array is not None:
            yield from _blocks_of(self._array)
            return
        rows = max(1, BLOCK_BYTES // (4 * self.record.dimension))
        with open_parquet(self.path, advice=_ADVICE) as file:
            for batch in file.iter_batches(batch_size=rows, columns=[COLUMN]):
                yield batch.column(0).flatten().to_numpy().reshape(-1, self.record.dimension)

    def _open_parquet(self) -> tuple[EmbeddingRecord, tuple[int, int]]:
        with open_parquet(self.path, advice=_ADVICE) as file:
            schema = file.schema_arrow
            metadata = (schema.metadata or {}).get(_METADATA)
            if metadata is None or COLUMN not in schema.names:
                raise data_error(f"{self.path} has no vectors that bertkit made. {_ADVICE}")
            width = getattr(schema.field(COLUMN).type, "list_size", 0)
            return _as_record(_parse(metadata, self.path), self.path), (file.metadata.num_rows, width)


def _as_record(content: object, path: Path) -> EmbeddingRecord:
    return from_plain(EmbeddingRecord, content, source=f"the record of {path}")


def _parse(metadata: bytes, path: Path) -> object:
    try:
        return parse_json(metadata)
    except ValueError as error:
        raise data_error(f"the record of {path} is damaged: {error}. {_ADVICE}") from error


def _read_sidecar(path: Path) -> dict[str, Any]:
    record = record_path(path)
    if not record.is_file():
        raise data_error(f"{path} has no {record.name} beside it, which says what made the vectors. {_ADVICE}")
    return read_checked(record, _ADVICE)


def _open_array(path: Path) -> Vectors:
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except (OSError, ValueError, EOFError, SyntaxError, OverflowError, TokenError) as error:  # its header is Python
        raise data_error(f"{path} is not a complete .npy file: {str(error).rstrip('.')}. {_ADVICE}") from error
    if array.dtype != np.float32 or array.ndim != 2:
        raise data_error(f"{path} is no table of float32 numbers, but {array.dtype} in {array.ndim} dimensions.")
    return np.asarray(array)


def _blocks_of(vectors: NDArray[np.float32]) -> Iterator[Vectors]:
    rows = max(1, BLOCK_BYTES // max(1, 4 * vectors.shape[1]))
    for start in range(0, len(vectors), rows):
        yield np.asarray(vectors[start : start + rows])
