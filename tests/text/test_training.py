"""The training of vocabularies, tried through the tokenizers that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bertkit.text import bpe, byte_bpe
from bertkit.text.base import BaseTokenizer
from bertkit.text.normalization import BertSpecialTokens, NormalizationRules, build_tokenizer
from bertkit.text.training import most_frequent_words, train_wordpiece
from bertkit.text.wordpiece import train

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ENGLISH = ["The quick brown fox jumps over the lazy dog, naïvely.", "A fox's résumé: quick jumps; lazier dogs!"] * 3
KOREAN = ["한국어를 공부합니다. 한국 사람은 한국말을 합니다.", "공부는 어렵지만 재미있습니다!"] * 3
RULES = build_tokenizer({}, NormalizationRules(lowercase=True, strip_accents=True), BertSpecialTokens())


def test_every_character_may_begin_or_continue_a_word() -> None:
    assert train(["abc"] * 2, vocab_size=99).unk_id not in train(["abc"] * 2, vocab_size=99).encode("cab bca").ids


def test_a_subword_needs_two_occurrences() -> None:
    assert train(["ab ab ab"], vocab_size=99).vocabulary == [*SPECIAL_TOKENS, "a", "b", "##a", "##b", "ab"]


@pytest.mark.parametrize("size", [10, 13, 37])
def test_a_large_alphabet_does_not_exceed_the_size(size: int) -> None:
    characters = "".join(map(chr, range(0xAC00, 0xAC00 + 137)))
    assert train([characters, *ENGLISH], vocab_size=size).vocab_size <= size


def test_the_same_text_gives_the_same_vocabulary() -> None:
    """The trainer of the library, given texts, makes a different one at almost every call."""
    assert len({train(ENGLISH + KOREAN, vocab_size=99).fingerprint for _ in range(7)}) == 1


def test_words_over_the_length_limit_are_ignored() -> None:
    assert train([*ENGLISH, "q" * 201]).fingerprint == train(ENGLISH).fingerprint


def test_texts_are_read_one_at_a_time() -> None:
    def texts() -> Iterator[str]:
        for number in range(3):
            open_texts.append(number)
            yield "some words"
            assert open_texts.pop() == number

    open_texts: list[int] = []
    train(texts(), vocab_size=99)


def test_rare_words_are_dropped_at_the_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.text.training._MOST_WORDS", 13)
    monkeypatch.setattr("bertkit.text.training._CHARACTERS_AT_ONCE", 99)
    rare = [chr(0xAC00 + number) for number in range(100)]
    trained = train((f"{word} frequent frequent" for word in rare), vocab_size=999)
    assert "frequent" in trained.vocabulary
    assert sum(word in trained.vocabulary for word in rare) < 50


def test_words_of_one_count_are_not_all_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a script without spaces a phrase is a word, and hardly one occurs twice."""
    monkeypatch.setattr("bertkit.text.training._MOST_WORDS", 13)
    trained = train([" ".join(f"ab{chr(0xAC00 + number)}cd" for number in range(99))], vocab_size=99)
    assert {"ab", "##cd"} <= set(trained.vocabulary)


@pytest.mark.parametrize("train", [bpe.train, byte_bpe.train])
def test_byte_pairs_of_the_same_text_are_the_same(train: Callable[..., BaseTokenizer]) -> None:
    assert len({train(ENGLISH, vocab_size=299).fingerprint for _ in range(7)}) == 1


def test_without_text_only_the_first_subwords_are_left() -> None:
    assert train_wordpiece([" ", ""], RULES, size=99, first=SPECIAL_TOKENS) == SPECIAL_TOKENS


def test_merges_follow_counts_made_by_hand() -> None:
    """``ab`` three times, ``ba`` twice, ``c`` once, which merges with nothing."""
    words = ["ab ab ab ba ba c"]
    assert bpe.train(words, vocab_size=99).vocabulary[4:] == [
        "a",
        "b",
        "c",
        "a</w>",
        "b</w>",
        "c</w>",
        "ab</w>",
        "ba</w>",
    ]
    assert byte_bpe.train(words, vocab_size=299).vocabulary[261:] == ["ab", "Ġab", "ba", "Ġba"]


def test_words_of_equal_frequency_are_in_alphabetical_order() -> None:
    assert most_frequent_words(["b a C a, b d"], RULES, size=4) == ["a", "b", ",", "c"]
