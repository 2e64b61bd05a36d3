"""Reading the files of a WordPiece tokenizer, ``vocab.txt`` or ``tokenizer.json``, and checking them."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from bertkit.errors import data_error
from bertkit.storage.atomic import read_json
from bertkit.text.added_tokens import AddedTokens, read_added_tokens, unmark_added
from bertkit.text.backend import MOST_CHARACTERS, build_backend
from bertkit.text.normalization import LONGEST_WORD, BertSpecialTokens, NormalizationRules, build_tokenizer
from bertkit.text.tokenizer_files import CONFIG, TOKENIZER, read_config

VOCABULARY = "vocab.txt"


_CASE_IN_NAME = re.compile(r"(?:^|_)(?:(cased|multi_cased)|uncased|multilingual|chinese)_L-\d")
_CASED_SHARE = 0.005

_GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""The classes of Hugging Face that take all rules from ``tokenizer.json``."""


@dataclass(frozen=True, kw_only=True)
class WordPieceFiles:
    """The content of a folder: the tokenizer, the names of its special tokens, the tokens that are added to them, and
    the file that was read."""

    backend: Tokenizer
    specials: BertSpecialTokens
    added: AddedTokens
    file: Path


def read_folder(path: Path) -> WordPieceFiles:
    """The tokenizer at ``path``, a folder or one of its files.

    ``tokenizer.json`` takes precedence over ``vocab.txt``; ``tokenizer_config.json`` is applied to either, but its
    flags only where it does not name Hugging Face's generic class, which ignores them.
    """
    folder = path if path.is_dir() else path.parent
    candidates = [path / TOKENIZER, path / VOCABULARY] if path.is_dir() else [path]
    file = next((each for each in candidates if each.is_file()), None)
    if file is None:
        problem = f"has neither {TOKENIZER} nor {VOCABULARY}" if path.is_dir() else "does not exist"
        raise data_error(f"no tokenizer at {path}: it {problem}.")
    config = read_config(folder)
    specials = _read_specials(config, folder / CONFIG)
    if file.suffix == ".json":
        backend, listed = _read_tokenizer_json(file, config, specials)
    else:
        backend, listed = _read_vocabulary(file, config, specials), []
    added = read_added_tokens(folder, config, listed, backend.get_vocab())
    return WordPieceFiles(backend=backend, specials=specials, added=added, file=file)


def wordpiece_config(specials: BertSpecialTokens, known: Container[str], **rules: bool) -> dict[str, object]:
    """The content of a ``tokenizer_config.json``, with the special tokens that are among the ``known`` ones.

    It names Hugging Face's generic class, which takes the rules from tokenizer.json; their BertTokenizer would build
    the rules from flags that cannot express all of them. The generic class must be told that BERT reads segment ids.
    """
    return {
        **rules,
        **{f"{name}_token": token for name, token in specials._asdict().items() if token in known},
        "model_max_length": 512,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }


def _read_specials(config: Mapping[str, object], file: Path) -> BertSpecialTokens:
    named = {}
    for name in BertSpecialTokens._fields:
        token = config.get(f"{name}_token")
        token = token.get("content") if isinstance(token, dict) else token  # Hugging Face writes both forms
        if isinstance(token, str):
            named[name] = token
        elif token is not None:
            raise data_error(f'{file}: "{name}_token" is {json.dumps(token)}; it must be a token of the vocabulary.')
    return BertSpecialTokens(**named)


def _read_vocabulary(file: Path, config: Mapping[str, object], specials: BertSpecialTokens) -> Tokenizer:
    vocabulary = _read_lines(file)
    lowercase = bool(config["do_lower_case"]) if "do_lower_case" in config else guess_case(file, vocabulary)[0]
    strip = config.get("strip_accents")
    longest = config.get("max_input_chars_per_word", LONGEST_WORD)
    if not isinstance(longest, int) or not 1 <= longest <= MOST_CHARACTERS:
        raise data_error(
            f"{file.parent / CONFIG}: max_input_chars_per_word must be a whole number from 1 to {MOST_CHARACTERS:,}."
        )
    rules = NormalizationRules(
        lowercase=lowercase,
        strip_accents=lowercase if strip is None else bool(strip),
        chinese=bool(config.get("tokenize_chinese_chars", True)),
        longest_word=longest,
    )
    return build_tokenizer(vocabulary, rules, specials)


def _read_lines(file: Path) -> dict[str, int]:
    """Subwords with their ids, which are line numbers from 0; a blank or repeated line would shift or hide ids."""
    try:
        lines = file.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise data_error(
            f"{file} is not UTF-8 text: byte {error.start:,} is 0x{error.object[error.start]:02x}."
        ) from error
    except OSError as error:
        raise data_error(f"{file} cannot be read: {error.strerror}.") from error
    vocabulary: dict[str, int] = {}
    for id, line in enumerate(lines):
        token = line.strip() or line.strip(" \t")  # U+3000 and others are white space, and may be tokens
        if not token:
            raise data_error(f"{file}, line {id + 1:,} is blank; every line of a vocabulary must be a token.")
        if token in vocabulary:
            raise data_error(f'{file}, line {id + 1:,}: "{token}" is already in line {vocabulary[token] + 1:,}.')
        vocabulary[token] = id
    return vocabulary


def guess_case(file: Path, vocabulary: Iterable[str] | None = None) -> tuple[bool, str]:
    """Whether the ``vocab.txt`` ``file``, which does not say, is for lower case, and how that is known.

    Google's names of folders say it (google-research/bert ``tokenization.py``, validate_case_matches_checkpoint); else
    a vocabulary is cased if more than one of 200 subwords has upper case. The uncased English one has none, that of
    Chinese has a few such as Roman numerals, and the cased one with the fewest that was seen, a Korean, has 1.2 %.
    """
    if match := _CASE_IN_NAME.search(file.absolute().parent.name):
        return match[1] is None, f"the name of its folder, {file.absolute().parent.name}"
    subwords = [token for token in vocabulary or _read_lines(file) if token[0] != "["]
    cased = sum(token != token.lower() for token in subwords)
    return cased <= _CASED_SHARE * len(subwords), f"{cased:,} of its {len(subwords):,} subwords have upper case"


def _read_tokenizer_json(
    file: Path, config: Mapping[str, object], specials: BertSpecialTokens
) -> tuple[Tokenizer, object]:
    """The tokenizer, in which the ``specials`` alone are special, and the added tokens as the file has them."""
    description = read_json(file)
    model = description.get("model") if isinstance(description, dict) else None
    if not isinstance(model, dict):
        raise data_error(f'{file} is not a tokenizer: it has no "model".')
    kind = model.get("type", "WordPiece")
    if kind != "WordPiece":
        raise data_error(f"{file} is a {kind} tokenizer; BERT's is WordPiece.")
    if config.get("tokenizer_class") not in _GENERIC:
        _apply_flags(description.get("normalizer"), config)
    listed = description.get("added_tokens")
    description["added_tokens"] = unmark_added(listed, specials)
    return build_backend(description, file), listed


def _apply_flags(normalizer: object, config: Mapping[str, object]) -> None:
    """Where the two files differ, ``tokenizer_config.json`` overrides, as in Hugging Face's own loader.

    Accents that are neither kept nor stripped follow upper case. That is written out here, as in the files that bertkit
    saves, because a tokenizer and its saved copy must have the same fingerprint.
    """
    if isinstance(normalizer, dict) and normalizer.get("type") == "BertNormalizer":
        names = {"do_lower_case": "lowercase", "strip_accents": "strip_accents"}
        names["tokenize_chinese_chars"] = "handle_chinese_chars"
        normalizer.update({name: config[flag] for flag, name in names.items() if flag in config})
        if normalizer.get("strip_accents") is None:
            normalizer["strip_accents"] = normalizer.get("lowercase", True)
