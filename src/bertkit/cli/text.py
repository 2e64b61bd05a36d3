"""The verbs from text files to token ids: corpus check, tokenizer train, show and compare, prepare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import bertkit
from bertkit.cli.output import show_json, show_lines, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import BAD_DATA
from bertkit.options.text import (
    CorpusCheckOptions,
    PrepareOptions,
    TokenizerCompareOptions,
    TokenizerShowOptions,
    TokenizerTrainOptions,
)
from bertkit.storage.remote import RemotePath, to_path

_MOST_SHOWN = 5
"""Files in a suggested command."""


def corpus_check(options: CorpusCheckOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Show a report on text files; ends with exit code 3 if one of them cannot be prepared as it is."""
    report = bertkit.corpus_check(**vars(options))
    show_json(report) if json else show_lines(report.lines())
    if report.problems:
        raise SystemExit(BAD_DATA)
    files = [*_shorten(options.files), *_name_field(options.field)]
    settings = ["--vocab-size", report.vocab_size, *(["--accents", "keep"] if report.needs_accents else [])]
    verbosity.suggest("bertkit", "tokenizer", "train", *files, *settings, "-o", "TOK")


def tokenizer_train(options: TokenizerTrainOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Train a tokenizer, and show the size of its vocabulary."""
    trained = bertkit.tokenizer_train(**vars(options))
    if json:
        show_json({"output": str(options.output), "vocab_size": trained.vocab_size})
    else:
        show_lines([f"{options.output}: {trained.vocab_size:,} subwords"])
    files = [*_shorten(options.files), *_name_field(options.field)]
    if options.on_bad_bytes != "error":
        files += ["--on-bad-bytes", options.on_bad_bytes]
    verbosity.suggest("bertkit", "prepare", *files, "--tokenizer", options.output, "-o", "DATA")


def tokenizer_show(options: TokenizerShowOptions, *, json: bool) -> None:
    """Show the tokens of a text."""
    tokens = bertkit.tokenizer_show(**vars(options))
    if json:
        show_json(tokens)
        return
    rows = [(each.token, each.id, f"{each.start}-{each.end}", options.text[each.start : each.end]) for each in tokens]
    show_table(("token", "id", "characters", "text"), rows)


def tokenizer_compare(options: TokenizerCompareOptions, *, json: bool) -> None:
    """Show how well each tokenizer fits the text."""
    found = bertkit.tokenizer_compare(**vars(options))
    if json:
        show_json(found)
        return
    rows = [
        (
            each.tokenizer,
            f"{each.vocab_size:,}",
            f"{each.tokens_per_word:.3f}",
            f"{each.characters_per_token:.2f}",
            f"{each.unknown:.3%}",
        )
        for each in found
    ]
    show_table(("tokenizer", "subwords", "tokens per word", "characters per token", "unknown tokens"), rows)


def prepare(options: PrepareOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Tokenize text files, and show what the shards hold."""
    manifest = bertkit.prepare(**vars(options))
    show_json(manifest) if json else show_lines(manifest.lines())
    output = to_path(options.output)
    if isinstance(output, RemotePath):  # shards are mapped into memory, so they must be downloaded
        return
    if not manifest.fits_vocabulary:
        files = [*_shorten(options.files), *_name_field(options.field)]
        verbosity.suggest("bertkit", "tokenizer", "train", *files, "-o", "TOK")
        return
    if _is_model(Path(options.tokenizer)):
        start = ["--from", options.tokenizer]
    else:
        start = [*_choose_architecture(output), "--size", "mini", "--profile", "fast"]
    verbosity.suggest("bertkit", "pretrain", output, *start, "--minutes", 30, "-o", "RUN")


def _shorten(files: Sequence[object]) -> Sequence[object]:
    """The files of a suggested command, or FILE... instead of a screen full of them."""
    return files if len(files) <= _MOST_SHOWN else ("FILE...",)


def _name_field(field: str | None) -> Sequence[object]:
    return () if field is None else ("--field", field)


def _is_model(path: Path) -> bool:
    """Whether ``path`` is a model, with which a pre-training can begin, and not a tokenizer alone."""
    return any((path / name).is_file() for name in ("config.json", "model/config.json", "bert_config.json"))


def _choose_architecture(data: Path) -> list[str]:
    """The option that names the architecture which uses this kind of tokenizer; none for BERT, the default."""
    from bertkit.data.shards import TOKENIZER
    from bertkit.text.bpe import BPE
    from bertkit.text.byte_bpe import ByteLevelBPE
    from bertkit.text.loading import load_tokenizer
    from bertkit.text.words import WordLevel

    architectures: dict[type, str] = {BPE: "gpt", ByteLevelBPE: "roberta", WordLevel: "elmo"}
    name = architectures.get(type(load_tokenizer(data / TOKENIZER)))
    return ["--architecture", name] if name else []
