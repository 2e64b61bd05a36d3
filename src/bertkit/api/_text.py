"""The verbs from text to tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertkit.api._paths import AnyPath, existing
from bertkit.data.inspection import CorpusReport, inspect_files
from bertkit.data.prepare import prepare as prepare_files
from bertkit.data.shards import Manifest
from bertkit.data.sources import BadBytes, Boundary, Reading, read_texts
from bertkit.data.tokenizers import load_tokenizer
from bertkit.report.progress import Mode, Progress
from bertkit.text import wordpiece
from bertkit.text.wordpiece import WordPiece


@dataclass(frozen=True, slots=True)
class TextPiece:
    """One piece of a text: characters ``start`` to ``end``."""

    piece: str
    id: int
    start: int
    end: int


def corpus_check(files: Iterable[AnyPath]) -> CorpusReport:
    """Encodings, documents, duplicates and lengths of text files."""
    return inspect_files(existing(files))


def tokenizer_train(
    files: Iterable[AnyPath],
    *,
    output: AnyPath,
    vocab_size: int = 30_000,
    cased: bool = False,
    accents: Literal["keep", "strip"] | None = None,
    unicode_form: Literal["NFC", "NFD"] | None = None,
    progress: Mode = "auto",
) -> WordPiece:
    """Learn a WordPiece vocabulary from text files and save it in the folder ``output``."""
    paths = existing(files)
    with Progress(progress) as bar:
        bar.say(f"learning {vocab_size:,} pieces from {len(paths):,} files")
        trained = wordpiece.train(
            read_texts(paths),
            vocab_size=vocab_size,
            cased=cased,
            strip_accents=None if accents is None else accents == "strip",
            unicode_form=unicode_form,
        )
    trained.save(Path(output))
    return trained


def tokenizer_show(tokenizer: AnyPath, text: str) -> list[TextPiece]:
    """How a text is cut; of words the numbers alone, without their characters."""
    loaded = load_tokenizer(Path(tokenizer))
    tokens = loaded.encode(text)
    numbers = [token if isinstance(token, int) else token[0] for token in tokens.ids]
    return [TextPiece(loaded.piece(id), id, *place) for id, place in zip(numbers, tokens.offsets, strict=True)]


def prepare(
    files: Iterable[AnyPath],
    *,
    tokenizer: AnyPath,
    output: AnyPath,
    workers: int | None = None,
    heldout: float = 0.01,
    boundary: Boundary = "auto",
    field: str | None = None,
    on_bad_bytes: BadBytes = "error",
    progress: Mode = "auto",
) -> Manifest:
    """Text files to a folder of tokens; the same call goes on after an interruption."""
    with Progress(progress) as bar:
        paths = existing(files)
        bar.start("preparing", sum(path.stat().st_size for path in paths), "byte")
        return prepare_files(
            paths,
            tokenizer=load_tokenizer(Path(tokenizer)),
            output=Path(output),
            workers=workers,
            heldout=heldout,
            reading=Reading(boundary=boundary, field=field, on_bad_bytes=on_bad_bytes),
            report=lambda done, total: bar.advance(done),
        )
