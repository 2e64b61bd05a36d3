"""Token shards: a prepared corpus on disk, writing and reading it.

A DATA folder holds ``*.safetensors`` shards, ``manifest.json`` and a copy of the tokenizer. A shard has three
tensors: ``tokens`` (N,), ``sentence_offsets`` (S + 1,) into the tokens and ``document_offsets`` (D + 1,) into the
sentences. The manifest is written last, so a folder with a manifest is complete. It contains the SHA-256 of every
shard, because safetensors does not notice a flipped bit.

Letters: N tokens, S sentences, D documents of a shard.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors.numpy import save

from bertkit.config.records import from_plain, to_plain
from bertkit.contracts import SubwordTokenizer
from bertkit.errors import count_of, data_error
from bertkit.formats.text_files import is_text_in_folder
from bertkit.results import Result
from bertkit.storage.atomic import write_file
from bertkit.storage.checksums import read_checked, require_format, sha256_of, write_checked
from bertkit.storage.locations import require_data
from bertkit.text.loading import load_tokenizer

CorpusSplit = Literal["train", "heldout"]

MANIFEST = "manifest.json"
JOB = "prepare.json"
"""The record of the command that makes the folder, written before anything else."""

TOKENIZER = "tokenizer"
FORMAT = 2
TokenIds = NDArray[np.integer]
"""(N,) ids of tokens; uint16 in shards whose vocabulary has at most 65,536 entries, else uint32."""

_MOST_UNKNOWN = 0.25
"""More unknown tokens than this share are reported. ELMo's words of a small corpus have up to 15 %."""

_DTYPES = {"U16": np.uint16, "U32": np.uint32, "I64": np.int64}


@dataclass(frozen=True, kw_only=True)
class ShardRecord:
    """A shard in the manifest; ``sha256`` is that of its file."""

    file: str
    split: CorpusSplit
    sha256: str
    tokens: int
    sentences: int
    documents: int


@dataclass(frozen=True, kw_only=True)
class SourceRecord:
    """An input file in the manifest, and how it was read.

    ``boundary`` is where its documents end; with ``sentence_lines`` every line was read as one sentence.
    """

    file: str
    bytes: int
    sha256: str
    boundary: str
    sentence_lines: bool
    documents: int
    replaced_characters: int


@dataclass(frozen=True, kw_only=True)
class DroppedRecord:
    """How many documents were left out, duplicates and documents with text of evaluation files, and how many repeated
    lines of the others."""

    duplicates: int = 0
    overlaps: int = 0
    lines: int = 0


@dataclass(frozen=True, kw_only=True, repr=False)
class Manifest(Result):
    """The content of a DATA folder and its origin.

    ``documents`` counts those that have a token. ``duplicate_documents`` counts those that repeat an earlier one
    exactly; they are kept. Documents that were ``dropped`` are not among them. ``tokenizer`` is a fingerprint.
    """

    format: int = FORMAT
    tokenizer: str
    vocab_size: int
    shards: tuple[ShardRecord, ...]
    tokens: int
    sentences: int
    documents: int
    unknown_tokens: int
    empty_documents: int
    duplicate_documents: int
    sources: tuple[SourceRecord, ...]
    dropped: DroppedRecord = DroppedRecord()

    @property
    def heldout_tokens(self) -> int:
        """Tokens that are not used in training."""
        return sum(record.tokens for record in self.shards if record.split == "heldout")

    @property
    def fits_vocabulary(self) -> bool:
        """Whether most of the text is known: a vocabulary of another language leaves nearly nothing."""
        return self.unknown_tokens <= _MOST_UNKNOWN * self.tokens

    @property
    def content(self) -> str:
        """One hash of all that training depends on: the shards and the tokenizer."""
        parts = [self.tokenizer, *(record.sha256 for record in self.shards)]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()

    @property
    def replaced_characters(self) -> int:
        """Characters that were not UTF-8 and were replaced by U+FFFD."""
        return sum(source.replaced_characters for source in self.sources)

    def lines(self) -> list[str]:
        """The manifest as lines of text."""
        warning = "" if self.fits_vocabulary else ": the vocabulary does not fit these texts"
        return [
            f"documents           {self.documents:,}",
            f"sentences           {self.sentences:,}",
            f"tokens              {self.tokens:,} in {count_of(len(self.shards), 'shard')}",
            f"held out            {self.heldout_tokens:,} tokens ({self.heldout_tokens / self.tokens:.2%})",
            f"unknown tokens      {self.unknown_tokens:,} ({self.unknown_tokens / self.tokens:.2%}){warning}",
            f"empty documents     {self.empty_documents:,} skipped",
            f"duplicates          {self.duplicate_documents:,} kept, {self.dropped.duplicates:,} dropped",
            f"overlaps            {self.dropped.overlaps:,} dropped",
            f"repeated lines      {self.dropped.lines:,} dropped",
            f"replaced characters {self.replaced_characters:,}",
        ]


class _ArrayEntry(TypedDict):
    """An array in the header of a safetensors file."""

    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """The arrays of one shard, mapped into memory: the disk is read where they are used."""

    tokens: TokenIds
    sentence_offsets: NDArray[np.int64]
    document_offsets: NDArray[np.int64]

    @classmethod
    def open(cls, path: Path) -> Shard:
        """Map a shard file; a header that does not fit the file is an error with the name of the file."""
        try:
            with path.open("rb") as file:
                size = int.from_bytes(file.read(8), "little")
                if size > path.stat().st_size:  # to read so much could need any memory
                    raise ValueError(f"its header would have {size:,} bytes")
                header = json.loads(file.read(size))
            arrays = {name: _map(path, 8 + size, header[name]) for name in cls.__slots__}
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise data_error(f"{path} is not a complete shard: {error}. Prepare the corpus again.") from error
        return cls(**arrays)


def _map(path: Path, start: int, entry: _ArrayEntry) -> NDArray[Any]:
    begin, _ = entry["data_offsets"]
    mapped = np.memmap(path, dtype=_DTYPES[entry["dtype"]], mode="r", offset=start + begin, shape=tuple(entry["shape"]))
    # A plain view: slicing a memmap object costs several times what slicing an array does.
    return mapped.view(np.ndarray)


def write_shard(path: Path, tokens: TokenIds, sentences: ArrayLike, documents: ArrayLike) -> str:
    """Write a shard completely or not at all; ``sentences`` and ``documents`` are the offsets, from 0 to the end.

    Returns the SHA-256 of the content in memory, so that a later check notices if the disk stored something else.
    """
    content = save(
        {
            "tokens": tokens,
            "sentence_offsets": np.asarray(sentences, dtype=np.int64),
            "document_offsets": np.asarray(documents, dtype=np.int64),
        }
    )
    # The library's own save_file makes a file that other users of the machine cannot read.
    write_file(path, lambda temporary: temporary.write_bytes(content))
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, eq=False)
class Corpus:
    """One split of a DATA folder."""

    folder: Path
    manifest: Manifest
    shards: tuple[Shard, ...]
    stamps: Mapping[Path, tuple[int, int, int]] = field(default_factory=dict)
    """Size, time and inode of each shard before its checksum was verified."""

    @cached_property
    def num_tokens(self) -> int:
        """Tokens of all shards."""
        return sum(len(shard.tokens) for shard in self.shards)

    @cached_property
    def num_documents(self) -> int:
        """Documents of all shards."""
        return sum(len(shard.document_offsets) - 1 for shard in self.shards)

    @classmethod
    def open(cls, folder: Path, split: CorpusSplit = "train", *, verify: bool = True) -> Corpus:
        """Open a split. Unless ``verify`` is False, the checksum of every shard is compared with the manifest first."""
        manifest = read_manifest(folder)
        records = [record for record in manifest.shards if record.split == split]
        # Taken before the checksums are computed, so that ``check_untouched`` also finds a shard that changes
        # meanwhile.
        stamps = {path: _stamp(path) for path in (_path_of(folder, record) for record in records)}
        for record in records if verify else ():
            verify_shard(folder, record)
        shards = tuple(Shard.open(_path_of(folder, record)) for record in records)
        for record, shard in zip(records, shards, strict=True):
            found = (len(shard.tokens), len(shard.sentence_offsets) - 1, len(shard.document_offsets) - 1)
            if found != (record.tokens, record.sentences, record.documents):
                raise data_error(f"{folder / record.file} does not have the sizes in the manifest. Prepare it again.")
        return cls(folder, manifest, shards, stamps)

    def check_untouched(self) -> None:
        """Raise if a shard was written after it was opened: the mapped data is no longer the verified data."""
        for path, stamp in self.stamps.items():
            if not path.is_file() or _stamp(path) != stamp:
                raise data_error(f"{path} has changed since it was verified. Prepare the corpus again.")

    def load_tokenizer(self) -> SubwordTokenizer:
        """The tokenizer that made the shards; it is an error if its copy in the folder was replaced."""
        tokenizer = load_tokenizer(self.folder / TOKENIZER)
        if tokenizer.fingerprint != self.manifest.tokenizer:
            raise data_error(
                f"{self.folder / TOKENIZER} is not the tokenizer that made the shards. Prepare the corpus again."
            )
        return tokenizer


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, which marks ``folder`` as complete."""
    write_checked(folder / MANIFEST, to_plain(manifest))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a DATA folder. Raises a data error if it is missing, damaged or of another format."""
    path = folder / MANIFEST
    require_data(folder)
    if not path.is_file():
        raise data_error(_explain_missing_manifest(folder))
    record = read_checked(path, "Prepare the corpus again.")
    require_format(path, record, FORMAT, "Prepare the corpus again.")
    return from_plain(Manifest, record, source=str(path))


def _explain_missing_manifest(folder: Path) -> str:
    for name, kind in (("run.json", "a run"), ("tokenizer.json", "a tokenizer or a model")):
        if (folder / name).is_file():
            return f"{folder} is {kind}, not a prepared corpus. Name the -o folder of bertkit prepare."
    if (folder / JOB).is_file():
        return f"{folder} has no {MANIFEST}: it is unfinished. Repeat its bertkit prepare command."
    if any(map(is_text_in_folder, folder.iterdir())):
        command = f"bertkit prepare {quote(str(folder))} --tokenizer TOK -o DATA"
        return f"{folder} has texts, not token ids. Prepare them first: {command}"
    return f"{folder} has no {MANIFEST}, so it is no prepared corpus. Name the -o folder of bertkit prepare."


def verify_shard(folder: Path, record: ShardRecord) -> None:
    """Raise a data error unless the SHA-256 of a shard is the one in its record."""
    path = _path_of(folder, record)
    try:
        found = sha256_of(path)
    except OSError as error:
        raise data_error(f"{path} cannot be read: {error.strerror or error}.") from error
    if found != record.sha256:
        raise data_error(f"{path} is damaged: its SHA-256 is not the manifest's. Prepare the corpus again.")


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def _path_of(folder: Path, record: ShardRecord) -> Path:
    path = folder / record.file
    # A name with a folder in it is refused: a manifest may come from somebody else.
    if path.name != record.file or not path.is_file():
        raise data_error(f"{path} is missing. Prepare the corpus again.")
    return path
