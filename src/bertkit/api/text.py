"""The verbs from text to tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bertkit.api.paths import AnyPath, existing
from bertkit.batch import number_of
from bertkit.contracts import SubwordTokenizer
from bertkit.data.inspection import CorpusReport, inspect_files
from bertkit.data.prepare import prepare as prepare_files
from bertkit.data.shards import Manifest
from bertkit.data.sources import BadBytes, Boundary, ReadOptions, read_texts
from bertkit.errors import usage_error
from bertkit.report.progress import Mode, Progress
from bertkit.text import bpe, byte_bpe, wordpiece, words
from bertkit.text.loading import load_tokenizer

TokenizerKind = Literal["wordpiece", "bpe", "byte-bpe", "words"]

_TRAINERS: Mapping[TokenizerKind, Callable[..., SubwordTokenizer]] = {
    "wordpiece": wordpiece.train,
    "bpe": bpe.train,
    "byte-bpe": byte_bpe.train,
    "words": words.train,
}


@dataclass(frozen=True, slots=True)
class TokenView:
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
    kind: TokenizerKind = "wordpiece",
    vocab_size: int = 30_000,
    cased: bool = False,
    accents: Literal["keep", "strip"] | None = None,
    unicode_form: Literal["NFC", "NFD"] | None = None,
    progress: Mode = "auto",
) -> SubwordTokenizer:
    """Learn a vocabulary from text files and save it in the folder ``output``.

    ``kind`` is BERT's ``wordpiece``, GPT's ``bpe``, RoBERTa's ``byte-bpe`` or ELMo's ``words``; only the first has a
    choice of what is kept of the letters.
    """
    paths = existing(files)
    rules: dict[str, Any] = {}
    if kind == "wordpiece":
        strip = None if accents is None else accents == "strip"
        rules = {"cased": cased, "strip_accents": strip, "unicode_form": unicode_form}
    elif cased or accents or unicode_form:
        raise usage_error(f"--cased, --accents and --unicode-form are for wordpiece; the rules of {kind} are fixed.")
    with Progress(progress) as bar:
        bar.say(f"learning {vocab_size:,} pieces from {len(paths):,} files")
        trained: SubwordTokenizer = _TRAINERS[kind](read_texts(paths), vocab_size=vocab_size, **rules)
    trained.save(Path(output))
    return trained


def tokenizer_show(tokenizer: AnyPath, text: str) -> list[TokenView]:
    """How a text is cut; of words the numbers alone, without their characters."""
    loaded = load_tokenizer(Path(tokenizer))
    tokens = loaded.encode(text)
    numbers = map(number_of, tokens.ids)
    return [TokenView(loaded.id_to_token(id), id, *place) for id, place in zip(numbers, tokens.offsets, strict=True)]


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
            reading=ReadOptions(boundary=boundary, field=field, on_bad_bytes=on_bad_bytes),
            report=lambda done, total: bar.advance(done),
        )
