"""Words as characters, by hand: every expected id is counted from the bytes of UTF-8."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.text.characters import NO_WORD, NUM_CHARACTERS, WORD_LENGTH, spell_sentence, spell_word


@pytest.mark.parametrize(
    ("word", "letters"),
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
def test_a_word_is_its_bytes_between_marks(word: str, letters: list[int]) -> None:
    filling = [261] * (11 - 2 - len(letters))
    assert spell_word(word, length=11).tolist() == [259, *letters, 260, *filling]


def test_the_published_length_is_fifty() -> None:
    assert spell_word("a").tolist() == [259, 98, 260] + [261] * 47


def test_a_long_word_is_cut_by_bytes_and_keeps_its_end_mark() -> None:
    assert spell_word("x" * 47).tolist() == [259] + [121] * 47 + [260, 261]
    assert spell_word("x" * 48).tolist() == [259] + [121] * 48 + [260]
    assert spell_word("x" * 99).tolist() == [259] + [121] * 48 + [260]
    assert spell_word("aé", length=4).tolist() == [259, 98, 196, 260]


def test_a_sentence_has_a_word_before_and_a_word_behind() -> None:
    filling = [261, 261]
    assert spell_sentence(["ab", "c"], length=5).tolist() == [
        [259, 257, 260, *filling],
        [259, 98, 99, 260, 261],
        [259, 100, 260, *filling],
        [259, 258, 260, *filling],
    ]
    assert spell_sentence([]).shape == (2, WORD_LENGTH)


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=99))
def test_no_word_has_the_id_of_no_word_and_short_ones_can_be_read_back(word: str) -> None:
    ids = spell_word(word)
    assert ids.shape == (WORD_LENGTH,)
    assert ids.min() > NO_WORD
    assert ids.max() < NUM_CHARACTERS
    letters = ids[1 : np.argmax(ids == 260)]
    encoded = word.encode()
    if word not in ("<S>", "</S>"):
        assert bytes((letters - 1).tolist()) == encoded[:48]
