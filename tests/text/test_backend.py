"""Rules of a tokenizer.json that need bounded time and memory are read, others are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bertkit.errors import BertkitError
from bertkit.text.backend import MOST_RULES, build_backend
from bertkit.text.normalization import BertSpecialTokens, NormalizationRules, build_tokenizer

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def replace(before: str, after: str, kind: str = "String") -> dict[str, Any]:
    return {"type": "Replace", "pattern": {kind: before}, "content": after}


def sequence(*rules: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(rules)}


def description(**parts: Any) -> dict[str, Any]:
    rules = NormalizationRules(lowercase=True, strip_accents=True, form="NFC")
    vocabulary = {token: id for id, token in enumerate([*BertSpecialTokens(), "a", "b"])}
    content: dict[str, Any] = json.loads(build_tokenizer(vocabulary, rules, BertSpecialTokens()).to_str())
    return content | parts


GOOD = {
    "bertkit's": {},
    "Google's": {"normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                                "strip_accents": None, "lowercase": True}},
    "ligatures": {"normalizer": sequence(*(replace(chr(0xFB00 + number), "ffi") for number in range(7)))},
    "quotation marks": {"normalizer": sequence(replace("``", '"'), replace("''", '"'), replace(" {2,}", " ", "Regex"))},
    "GPT-2's splitting": {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": GPT2}, "behavior": "Isolated",
                                            "invert": False}},
    "Llama 3's splitting": {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": LLAMA3}, "behavior": "Isolated",
                                              "invert": False}},
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_rules_of_known_tokenizers_are_read(name: str) -> None:
    backend = build_backend(description(**GOOD[name]), "t.json")
    assert backend.encode("a b", add_special_tokens=False).tokens == ["a", "b"] or "Split" in str(GOOD[name])


NESTED: dict[str, Any] = sequence()
for _ in range(MOST_RULES):
    NESTED = sequence(NESTED)

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "doubling": ({"normalizer": sequence(*[replace("a", "aa")] * 30)}, "64 times longer"),
    "a long replacement": ({"normalizer": replace("a", "a" * 10**6)}, "64 times longer"),
    "a chain": (
        {"normalizer": sequence(*(replace(chr(97 + n), chr(98 + n) * 9) for n in range(20)))},
        "64 times longer",
    ),
    "nothing to something": ({"normalizer": sequence(*[replace("", "aa")] * 30)}, "64 times longer"),
    "expressions": ({"normalizer": sequence(*[replace(".", "aa", "Regex")] * 30)}, "64 times longer"),
    "a repeated group": ({"normalizer": replace("(a+)+$", "", "Regex")}, "may need any time"),
    "a counted group": ({"normalizer": replace("(a+){30}$", "", "Regex")}, "may need any time"),
    "many repetitions": ({"normalizer": replace("a*a*a*a*a*b", "", "Regex")}, "may need any time"),
    "in the splitting": (
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|a)*b"}, "behavior": "Isolated", "invert": False}},
        "pre_tokenizer has the regular expression",
    ),
    "in the decoder": ({"decoder": replace("(a+)+$", "", "Regex")}, "decoder has the regular expression"),
    "a thousand rules": ({"normalizer": sequence(*[{"type": "Lowercase"}] * 1000)}, "more than 200 rules"),
    "nested rules": ({"normalizer": NESTED}, "more than 200 rules"),
    "long words": (
        {"model": {**description()["model"], "max_input_chars_per_word": 10**9}},
        "max_input_chars_per_word is 1,000,000,000",
    ),
    "a rule that panics": ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": ""}}, "is not a tokenizer"),
    "a rule that panics at a text": ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, "is not a tokenizer"),
    "an unknown rule": ({"normalizer": {"type": "Loop"}}, "is not a tokenizer"),
    "a rule that is a list": ({"normalizer": [[]]}, "a rule that is no object"),
    "a pattern that is a number": (
        {"normalizer": {"type": "Replace", "pattern": 3, "content": 4}},
        "is not a tokenizer",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_rules_without_bounds_are_refused(name: str) -> None:
    parts, message = BAD[name]
    with pytest.raises(BertkitError, match=message) as caught:
        build_backend(description(**parts), "t.json")
    assert str(caught.value).startswith("t.json")


def test_texts_are_neither_truncated_nor_padded() -> None:
    limit = {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0}
    padding = {"strategy": {"Fixed": 9}, "direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    backend = build_backend(description(truncation=limit, padding={**padding, "pad_to_multiple_of": None}), "t.json")
    assert backend.encode("a b a", add_special_tokens=False).tokens == ["a", "b", "a"]


def test_the_unknown_token_is_in_the_vocabulary_of_the_model() -> None:
    """The library reads it from the added tokens alone, and then fails at the first unknown word."""
    content = description()
    del content["model"]["vocab"]["[UNK]"]
    with pytest.raises(BertkitError, match=r'^t\.json: the unknown token "\[UNK\]" is not in the vocabulary'):
        build_backend(content, "t.json")
