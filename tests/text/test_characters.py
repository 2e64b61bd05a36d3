"""Words as characters; every expected id is a byte of UTF-8 plus 1, written by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.text.characters import NO_WORD, NUM_CHARACTERS, WORD_LENGTH, spell_word


@pytest.mark.parametrize(
    ("word", "characters"),
    [
        ("A", [66]),
        ("cat", [100, 98, 117]),
        ("é", [196, 170]),
        ("한", [238, 150, 157]),
        ("🦀", [241, 160, 167, 129]),
        ("\x00", [1]),
        ("", []),
        ("a\ud83db", [98, 99]),
        ("<S>", [257]),
        ("</S>", [258]),
        ("<s>", [61, 116, 63]),
        ("<UNK>", [61, 86, 79, 76, 63]),
    ],
)
def test_a_word_is_its_bytes_between_markers(word: str, characters: list[int]) -> None:
    padding = [261] * (11 - 2 - len(characters))
    assert spell_word(word, length=11).tolist() == [259, *characters, 260, *padding]


def test_the_published_length_is_fifty() -> None:
    assert spell_word("a").tolist() == [259, 98, 260] + [261] * 47


def test_a_long_word_is_truncated_by_bytes_and_keeps_its_end_marker() -> None:
    assert spell_word("x" * 47).tolist() == [259] + [121] * 47 + [260, 261]
    assert spell_word("x" * 48).tolist() == [259] + [121] * 48 + [260]
    assert spell_word("x" * 99).tolist() == [259] + [121] * 48 + [260]
    assert spell_word("aé", length=4).tolist() == [259, 98, 196, 260]


def test_the_words_that_begin_and_end_a_sentence_are_one_character() -> None:
    assert spell_word("<S>", length=5).tolist() == [259, 257, 260, 261, 261]
    assert spell_word("</S>", length=5).tolist() == [259, 258, 260, 261, 261]


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=99))
def test_spelling_can_be_reversed_and_never_contains_the_padding_word(word: str) -> None:
    ids = spell_word(word)
    assert ids.shape == (WORD_LENGTH,)
    assert ids.min() > NO_WORD
    assert ids.max() < NUM_CHARACTERS
    characters = ids[1 : np.argmax(ids == 260)]
    encoded = word.encode()
    if word not in ("<S>", "</S>"):
        assert bytes((characters - 1).tolist()) == encoded[:48]
