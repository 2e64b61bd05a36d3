"""Options of the verbs from text files to token ids: corpus check, tokenizer train, show and compare, prepare."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from bertkit.options.inputs import InputFile, ModelPath, TextsPath, TokenizerPath, UploadPath
from bertkit.options.job import AnyPath, Engine, JobOptions, Options
from bertkit.ranges import Processes, Range, ShareAboveZero, ShareBelowOne, VocabularySize


@dataclass(frozen=True, kw_only=True)
class CorpusCheckOptions(Options):
    """Check text files: encodings, documents, duplicates, lengths, scripts and languages.

    The files are .txt, .jsonl, .parquet, .md, .html, MediaWiki's .xml or Common Crawl's .wet, plain or compressed as
    .gz, .bz2, .xz or .zst. The command ends with exit code 3 if a file cannot be prepared as it is.
    """

    files: Sequence[TextsPath] = dataclasses.field(kw_only=False)
    """Text files, or folders of them."""
    against: Sequence[InputFile] = ()
    """Dev and test files: count how many of their texts share 13 words in sequence with the corpus."""
    near_duplicates: bool = False
    """Count documents that repeat at least 80 % of an earlier one."""
    field: str | None = None
    """Key or column that holds the text of a record."""


@dataclass(frozen=True, kw_only=True)
class TokenizerTrainOptions(JobOptions):
    """Train a tokenizer on text files."""

    files: Sequence[TextsPath] = dataclasses.field(kw_only=False)
    """Text files, or folders of them."""
    output: AnyPath
    """Folder for tokenizer.json and its companions."""
    from_: ModelPath | None = None
    """Keep the WordPiece tokenizer of this model, and add the words of the text files that it splits, up to
    --vocab-size. A pretrain --from the same model starts their embeddings from those of their parts."""
    kind: Literal["wordpiece", "bpe", "byte-bpe", "words"] = "wordpiece"
    """BERT's WordPiece, GPT's byte pairs, RoBERTa's byte-level byte pairs, or ELMo's whole words."""
    vocab_size: VocabularySize = 30_000
    """Subwords, special tokens included; fewer if the text does not have that many."""
    cased: bool = False
    """Keep upper case and accents (wordpiece only)."""
    accents: Literal["keep", "strip"] | None = None
    """Keep or strip the accents of letters (wordpiece only). [default: strip; keep with --cased]"""
    unicode_form: Literal["NFC", "NFD"] | None = None
    """NFC keeps Hangul syllables whole, NFD decomposes letters (wordpiece only). [default: NFC where accents are
    stripped]"""
    sample: ShareAboveZero = 1.0
    """Learn from this share of the text, drawn at random: memory and time grow with the number of different words."""
    field: str | None = None
    """Key or column that holds the text of a record."""
    on_bad_bytes: Literal["error", "replace"] = "error"
    """Stop at bytes that are not UTF-8, or replace them."""
    overwrite: bool = False
    """Replace the tokenizer in OUTPUT."""


@dataclass(frozen=True, kw_only=True)
class TokenizerShowOptions(Options):
    """Show the tokens of a text: subwords, ids and character offsets."""

    tokenizer: TokenizerPath = dataclasses.field(kw_only=False)
    """Folder of a tokenizer or of a model, or a vocab.txt."""
    text: str = dataclasses.field(kw_only=False)
    """Any text."""


@dataclass(frozen=True, kw_only=True)
class TokenizerCompareOptions(Options):
    """Compare tokenizers on the same text: tokens per word, characters per token, and unknown tokens."""

    tokenizers: Sequence[TokenizerPath] = dataclasses.field(kw_only=False)
    """Folders of tokenizers or of models, or files vocab.txt."""
    texts: Sequence[TextsPath]
    """Text files, or folders of them, that no tokenizer was trained on."""
    sample: ShareAboveZero = 1.0
    """Read this share of the text, drawn at random."""
    field: str | None = None
    """Key or column that holds the text of a record."""
    on_bad_bytes: Literal["error", "replace"] = "error"
    """Stop at bytes that are not UTF-8, or replace them."""


@dataclass(frozen=True, kw_only=True)
class PrepareOptions(JobOptions):
    """Tokenize text files into a folder of shards for pre-training.

    The same command continues after an interruption.
    """

    CONTINUES = True

    files: Sequence[TextsPath] = dataclasses.field(kw_only=False)
    """Text files, or folders of them (the formats of bertkit corpus check)."""
    tokenizer: TokenizerPath
    """Folder of a tokenizer or of a model; the tokenizer is copied next to the shards."""
    output: UploadPath
    """Folder for shards, manifest and tokenizer, or a URL such as s3://bucket/data, to which they are uploaded."""
    workers: Processes | None = None
    """Number of processes. [default: one per core]"""
    engine: Engine = "local"
    """Work on this machine, or on a Ray cluster whose nodes have bertkit and the same files (bertkit[ray])."""
    heldout: ShareBelowOne = 0.01
    """Share of the tokens that is held out of training, for evaluation; also from within long documents."""
    boundary: Literal["auto", "blank-line", "line", "file", "record"] = "auto"
    """Where a document ends: at a blank line, or at the end of every line, file or record; auto detects it from the
    file, but never chooses line."""
    field: str | None = None
    """Key or column that holds the text of a record."""
    on_bad_bytes: Literal["error", "replace"] = "error"
    """Stop at bytes that are not UTF-8, or replace and count them."""
    drop_duplicates: Literal["exact", "near"] | None = None
    """Leave out documents that repeat an earlier one exactly, or at least 80 % of it. [default: keep them]"""
    drop_repeated_lines: Annotated[int, Range(2, 1_000_000_000)] | None = None
    """Leave out lines of 20 characters or more that are in this many documents, such as menus and licences. [default:
    keep them]"""
    drop_overlap: Sequence[InputFile] = ()
    """Leave out documents that share 13 words in sequence with these dev and test files."""
