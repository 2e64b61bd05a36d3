"""The files that hold a WordPiece tokenizer, read and judged: ``vocab.txt`` and ``tokenizer.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from bertkit.errors import data_error
from bertkit.storage.atomic import read_json
from bertkit.text.normalization import LONGEST_WORD, NormalizationRules, SpecialTokens, assemble

CONFIG = "tokenizer_config.json"
RULES = "tokenizer.json"
VOCABULARY = "vocab.txt"


def read_folder(path: Path) -> tuple[Tokenizer, SpecialTokens, Path]:
    """The tokenizer at ``path``, a folder or one of its files; how special pieces are spelled; the file it came from.

    ``tokenizer.json`` is taken before ``vocab.txt``, and ``tokenizer_config.json`` is heeded beside either.
    """
    folder = path if path.is_dir() else path.parent
    candidates = [path / RULES, path / VOCABULARY] if path.is_dir() else [path]
    file = next((each for each in candidates if each.is_file()), None)
    if file is None:
        there = f"has neither {RULES} nor {VOCABULARY}" if path.is_dir() else "does not exist"
        raise data_error(f"no tokenizer at {path}: it {there}.")
    config = read_json(folder / CONFIG) if (folder / CONFIG).is_file() else {}
    if not isinstance(config, dict):
        raise data_error(f"{folder / CONFIG} is not a JSON object.")
    specials = _read_specials(config, folder / CONFIG)
    if file.suffix == ".json":
        return _read_rules(file, config), specials, file
    return _read_vocabulary(file, config, specials), specials, file


def config_of(specials: SpecialTokens, **rules: Any) -> dict[str, Any]:
    """The content of a ``tokenizer_config.json``.

    Their generic class takes the rules from tokenizer.json as they are; their BertTokenizer would rebuild them from
    flags that cannot say all of it. The generic class has to be told that BERT reads segments.
    """
    return {
        **rules,
        **{f"{name}_token": piece for name, piece in specials._asdict().items()},
        "model_max_length": 512,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def _read_specials(config: Mapping[str, Any], file: Path) -> SpecialTokens:
    named = {}
    for name in SpecialTokens._fields:
        piece = config.get(f"{name}_token")
        piece = piece.get("content") if isinstance(piece, dict) else piece  # both spellings are in use
        if isinstance(piece, str):
            named[name] = piece
        elif piece is not None:
            raise data_error(f'{file}: "{name}_token" is {json.dumps(piece)}; it must be a piece of the vocabulary.')
    return SpecialTokens(**named)


def _read_vocabulary(file: Path, config: Mapping[str, Any], specials: SpecialTokens) -> Tokenizer:
    pieces = _read_lines(file)
    lowercase = bool(config.get("do_lower_case", not _looks_cased(pieces, specials)))
    strip = config.get("strip_accents")
    rules = NormalizationRules(
        lowercase=lowercase,
        strip_accents=lowercase if strip is None else bool(strip),
        chinese=bool(config.get("tokenize_chinese_chars", True)),
        longest_word=int(config.get("max_input_chars_per_word", LONGEST_WORD)),
    )
    return assemble(pieces, rules, specials)


def _read_lines(file: Path) -> dict[str, int]:
    """Pieces with their ids, which are the numbers of their lines; a blank or repeated one shifts or hides ids."""
    try:
        lines = file.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise data_error(
            f"{file} is not UTF-8 text: byte {error.start:,} is 0x{error.object[error.start]:02x}."
        ) from error
    except OSError as error:
        raise data_error(f"{file} cannot be read: {error.strerror}.") from error
    pieces: dict[str, int] = {}
    for number, line in enumerate(lines):
        piece = line.strip()
        if not piece:
            raise data_error(f"{file}, line {number + 1:,} is blank; every line of a vocabulary is a piece.")
        if piece in pieces:
            raise data_error(f'{file}, line {number + 1:,}: "{piece}" is in line {pieces[piece] + 1:,} already.')
        pieces[piece] = number
    return pieces


def _looks_cased(pieces: Iterable[str], specials: SpecialTokens) -> bool:
    """A bare ``vocab.txt`` does not say; a cased one has words with capitals."""
    return any(piece != piece.lower() for piece in pieces if piece not in specials and piece[0] != "[")


def _read_rules(file: Path, config: Mapping[str, Any]) -> Tokenizer:
    description = read_json(file)
    model = description.get("model") if isinstance(description, dict) else None
    if not isinstance(model, dict):
        raise data_error(f'{file} is not a tokenizer: it has no "model".')
    kind = model.get("type", "WordPiece")
    if kind != "WordPiece":
        raise data_error(f"{file} is a {kind} tokenizer; BERT's is WordPiece.")
    _apply_flags(description, config)
    try:
        backend = Tokenizer.from_str(json.dumps(description))
    except Exception as error:  # the library raises nothing narrower
        raise data_error(f"{file} is not a tokenizer: {error}.") from error
    backend.no_padding()
    backend.no_truncation()
    return backend


def _apply_flags(description: dict[str, Any], config: Mapping[str, Any]) -> None:
    """Where the two files differ, Hugging Face's own loader heeds ``tokenizer_config.json``."""
    normalizer = description.get("normalizer")
    if isinstance(normalizer, dict) and normalizer.get("type") == "BertNormalizer":
        names = {"do_lower_case": "lowercase", "strip_accents": "strip_accents"}
        names["tokenize_chinese_chars"] = "handle_chinese_chars"
        normalizer.update({theirs: config[flag] for flag, theirs in names.items() if flag in config})
