"""The verbs from text files to tokens: corpus check, tokenizer train, tokenizer show, prepare."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertkit.cli.output import show_json, show_lines, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import BAD_DATA


def corpus_check(*files: Path, json: bool = False, talk: Verbosity | None = None) -> None:
    """Encodings, documents, duplicates and lengths of text files (.txt .jsonl .parquet, plain, .gz or .zst).

    Ends with exit code 3 when something keeps a file from being prepared as it is.

    Parameters
    ----------
    json:
        Show the result as JSON.
    """
    from bertkit import api

    report = api.corpus_check(files)
    show_json(report) if json else show_lines(report.lines())
    if report.problems:
        raise SystemExit(BAD_DATA)
    (talk or Verbosity()).next("bertkit", "tokenizer", "train", *files, "-o", "TOK")


@dataclass(frozen=True, kw_only=True)
class VocabularyOptions:
    """Options of ``tokenizer train``."""

    output: Path
    """Folder for tokenizer.json and what belongs to it."""
    kind: Literal["wordpiece", "bpe", "byte-bpe", "words"] = "wordpiece"
    """BERT's WordPiece, GPT's byte pairs, RoBERTa's byte-level pairs, or ELMo's whole words."""
    vocab_size: int = 30_000
    """Pieces, special ones included; fewer when the text has no more."""
    cased: bool = False
    """Keep upper case and accents."""
    accents: Literal["keep", "strip"] | None = None
    """Keep accents on letters or strip them. [default: strip, and keep with --cased]"""
    unicode_form: Literal["NFC", "NFD"] | None = None
    """NFC keeps Hangul syllables whole, NFD takes letters apart. [default: NFC where accents are stripped]"""


def tokenizer_train(*files: Path, options: VocabularyOptions, talk: Verbosity | None = None) -> None:
    """Learn a vocabulary from text files."""
    from bertkit import api

    talk = talk or Verbosity()
    trained = api.tokenizer_train(files, **vars(options), progress=talk.mode)
    show_lines([f"{options.output}: {trained.vocab_size:,} pieces"])
    talk.next("bertkit", "prepare", *files, "--tokenizer", options.output, "-o", "DATA")


def tokenizer_show(tokenizer: Path, text: str, /, *, json: bool = False) -> None:
    """How a text is cut: pieces, their ids, and the characters that they stand for.

    Parameters
    ----------
    tokenizer:
        Folder of a tokenizer, or a vocab.txt.
    text:
        Any text.
    json:
        Show the result as JSON.
    """
    from bertkit import api

    pieces = api.tokenizer_show(tokenizer, text)
    if json:
        show_json(pieces)
    else:
        rows = [(each.piece, each.id, f"{each.start}-{each.end}", text[each.start : each.end]) for each in pieces]
        show_table(("piece", "id", "characters", "text"), rows)


@dataclass(frozen=True, kw_only=True)
class PrepareOptions:
    """Options of ``prepare``."""

    tokenizer: Path
    """Folder of a tokenizer; a copy of it travels with the tokens."""
    output: Path
    """Folder for shards, manifest and tokenizer."""
    workers: int | None = None
    """Processes; as many as there are cores unless given."""
    heldout: float = 0.01
    """Share of the documents that is kept from training, to measure with."""
    boundary: Literal["auto", "blank-line", "file", "record"] = "auto"
    """What ends a document: a blank line, a file or a record; found out from the file (auto)."""
    field: str | None = None
    """The key or column with the text of a record."""
    on_bad_bytes: Literal["error", "replace"] = "error"
    """Stop at bytes that are not UTF-8, or replace and count them."""


def prepare(*files: Path, options: PrepareOptions, talk: Verbosity | None = None) -> None:
    """Text files to a folder of tokens that training reads from; the same command goes on after an interruption."""
    from bertkit import api

    talk = talk or Verbosity()
    manifest = api.prepare(files, **vars(options), progress=talk.mode)
    show_lines(manifest.lines())
    reader = _choose_architecture(options.output)
    talk.next("bertkit", "pretrain", options.output, *reader, "--size", "mini", "--minutes", 30, "-o", "RUN")


def _choose_architecture(data: Path) -> list[str]:
    """The options that name the network which a vocabulary was made for, where that is not BERT."""
    from bertkit.data.shards import TOKENIZER
    from bertkit.text.bpe import BPE
    from bertkit.text.byte_bpe import ByteLevelBPE
    from bertkit.text.loading import load_tokenizer
    from bertkit.text.words import WordLevel

    readers: dict[type, str] = {BPE: "gpt", ByteLevelBPE: "roberta", WordLevel: "elmo"}
    name = readers.get(type(load_tokenizer(data / TOKENIZER)))
    return ["--architecture", name] if name else []
