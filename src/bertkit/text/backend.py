"""The tokenizer of a ``tokenizer.json`` from elsewhere, after checks that its rules need bounded time and memory.

The rules of such a file are a small program: replacements can make a text longer in every step, and a regular
expression can need time that grows exponentially with the text. The library runs both without a limit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from tokenizers import Tokenizer

from bertkit.errors import data_error

MOST_RULES = 200
MOST_GROWTH = 64
"""How many times longer the replacements of a file may make a text."""
MOST_CHARACTERS = 1000
"""Characters of a word that is looked up; the time for one grows with its square. BERT has 100 or 200."""
LONGEST_PATTERN = 2000
MOST_REPETITIONS = 2
"""Repetitions without a limit in one alternative of a regular expression. GPT-2, Llama 3 and bertkit have at most 2."""

_PARTS = ("normalizer", "pre_tokenizer", "decoder")
_LONGEST_PROBE = 1 << 20

_ESCAPE = re.compile(r"\\.", re.DOTALL)
_CLASS = re.compile(r"\[[^\]]*\]")
_REPETITION = re.compile(r"[*+]|\{\d*,\}|\{(?:\d*,)?\d{3,}\}")
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{)")


def build_backend(description: Mapping[str, object], source: object) -> Tokenizer:
    """The library's tokenizer from the content of a ``tokenizer.json``; ``source`` names the file in errors.

    It neither truncates nor pads, as files that were saved after a training with transformers may say.

    Raises a data error for rules that need more than the limits above or fail at any text, and for a model whose
    unknown token is not in its own vocabulary: that would fail at the first unknown word of a text.
    """
    for problem in _problems(description):
        raise data_error(f"{source}: {problem}: it may be made to fill memory or time.")
    with _panics_explained(source):
        backend = Tokenizer.from_buffer(msgspec.json.encode({**description, "truncation": None, "padding": None}))
    unknown = getattr(backend.model, "unk_token", None)  # a Unigram model has a number
    if unknown is not None and backend.model.token_to_id(unknown) is None:
        raise data_error(f'{source}: the unknown token "{unknown}" is not in the vocabulary of its model.')
    with _panics_explained(source):
        backend.encode("a b", add_special_tokens=False)
    return backend


@contextmanager
def _panics_explained(source: object) -> Iterator[None]:
    """Turn any error of the library into a data error; a panic of Rust is no Exception."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise data_error(f"{source} is not a tokenizer: {error}.") from error


def list_rules(part: object) -> Iterator[object]:
    """The rules of a part in order, those of sequences included; one more than the limit at most.

    A part that is null has none. The library also reads lists as rules.
    """
    waiting, found = [] if part is None else [part], 0
    while waiting and found <= MOST_RULES:
        rule = waiting.pop()
        found += 1
        yield rule
        for inner in ("normalizers", "pretokenizers", "decoders"):
            if isinstance(rule, dict) and isinstance(rule.get(inner), list):
                waiting += reversed(rule[inner])


def _problems(description: Mapping[str, object]) -> Iterator[str]:
    model = description.get("model")
    longest = model.get("max_input_chars_per_word") if isinstance(model, dict) else None
    if isinstance(longest, int) and longest > MOST_CHARACTERS:
        yield f"max_input_chars_per_word is {longest:,}; bertkit reads {MOST_CHARACTERS:,} at most"
    for part in _PARTS:
        found = list(list_rules(description.get(part)))
        rules = [rule for rule in found if isinstance(rule, dict)]
        if len(found) > MOST_RULES:
            yield f"the {part} has more than {MOST_RULES} rules"
            continue
        if len(found) > len(rules):
            yield f"the {part} has a rule that is no object"
        for rule in rules:
            pattern = _regex(rule)
            if pattern is not None and _is_slow(pattern):
                yield f"the {part} has the regular expression {json.dumps(pattern):.80}, which may need any time"
        if _grows(rules):
            yield f"the replacements of the {part} make a text more than {MOST_GROWTH} times longer"


def _regex(rule: Mapping[str, object]) -> str | None:
    pattern = rule.get("pattern")
    found = pattern.get("Regex") if isinstance(pattern, dict) else None
    return found if isinstance(found, str) else None


def _is_slow(pattern: str) -> bool:
    """Whether a regular expression may backtrack: a repeated group, or many repetitions in one alternative."""
    plain = _CLASS.sub("c", _ESCAPE.sub("c", pattern))
    repetitions = max(len(_REPETITION.findall(each)) for each in plain.split("|"))
    return len(pattern) > LONGEST_PATTERN or repetitions > MOST_REPETITIONS or bool(_REPEATED_GROUP.search(plain))


def _grows(rules: Sequence[Mapping[str, object]]) -> bool:
    """Whether replacements, one after another, make a text of all their patterns too long.

    A regular expression is taken to match once per character.
    """
    replacements = [rule for rule in rules if "content" in rule]
    probe = "".join(map(_literal, replacements)) or "a"
    most = MOST_GROWTH * len(probe)
    length_factor = 1
    for rule in replacements:
        content = rule.get("content")
        content = content if isinstance(content, str) else ""
        if _regex(rule) is None:
            probe = probe.replace(_literal(rule), content)
        else:
            length_factor *= max(1, len(content))
        if len(probe) * length_factor > most or len(probe) > _LONGEST_PROBE:
            return True
    return False


def _literal(rule: Mapping[str, object]) -> str:
    pattern = rule.get("pattern")
    found = pattern.get("String") if isinstance(pattern, dict) else None
    return found if isinstance(found, str) else ""
