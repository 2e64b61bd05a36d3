from __future__ import annotations

from typing import Any

import pytest

from bertkit.text.normalization import BertSpecialTokens, NormalizationRules, build_tokenizer
from bertkit.text.wordpiece import train

ENGLISH = ["The quick brown fox jumps over the lazy dog, naïvely.", "A fox's résumé: quick jumps; lazier dogs!"] * 3


def words_of(text: str, **rules: Any) -> list[str]:
    rules = {"lowercase": True, "strip_accents": True, **rules}
    backend = build_tokenizer({}, NormalizationRules(**rules), BertSpecialTokens())
    return [word for word, _ in backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(text))]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ["naive", "fox", ",", "중", "中", "国"]),
        ({"strip_accents": False}, ["naïve", "fox", ",", "중", "中", "国"]),
        ({"cased": True}, ["Naïve", "Fox", ",", "중", "中", "国"]),
        ({"cased": True, "strip_accents": True}, ["Naive", "Fox", ",", "중", "中", "国"]),
        ({"cased": True, "unicode_form": "NFD"}, ["Nai\u0308ve", "Fox", ",", "\u110c\u116e\u11bc", "中", "国"]),
        ({"unicode_form": "NFD"}, ["naive", "fox", ",", "\u110c\u116e\u11bc", "中", "国"]),
    ],
)
def test_rules_follow_the_options(options: dict[str, Any], words: list[str]) -> None:
    assert train(ENGLISH, vocab_size=99, **options).pre_tokenize("Naïve\u200b Fox,중\t中国") == words


def test_cased_text_is_not_normalized() -> None:
    trained = train(ENGLISH, vocab_size=99, cased=True)
    assert trained.pre_tokenize("e\u0301 é") == ["e\u0301", "é"]


def test_a_final_sigma_is_lower_cased_as_in_python() -> None:
    assert words_of("ΟΔΟΣ ΣΑΣ Σ") == ["οδος", "σας", "σ"] == [word.lower() for word in ["ΟΔΟΣ", "ΣΑΣ", "Σ"]]


def test_ascii_symbols_count_as_punctuation() -> None:
    assert words_of("a$b^c`d") == ["a", "$", "b", "^", "c", "`", "d"]


def test_control_characters_are_dropped_and_tabs_separate() -> None:
    assert words_of("a\u200bb\0c\td\ufffd") == ["abc", "d"]


def test_chinese_characters_may_stay_together() -> None:
    assert words_of("中文a") == ["中", "文", "a"]
    assert words_of("中文a", chinese=False) == ["中文a"]


def test_special_tokens_outside_the_vocabulary_are_left_out() -> None:
    backend = build_tokenizer(
        {"[UNK]": 0, "a": 1}, NormalizationRules(lowercase=True, strip_accents=True), BertSpecialTokens()
    )
    assert backend.get_vocab() == {"[UNK]": 0, "a": 1}
