"""Sequences of words as numbers."""

from __future__ import annotations

import pytest

from bertkit.data import ngrams
from bertkit.data.ngrams import NgramHasher

TEXT = "One two, three. Four FIVE six's _seven_ 8 nine ten"


def test_there_is_one_number_per_sequence() -> None:
    hasher = NgramHasher(3)
    assert len(set(hasher.add(TEXT).tolist())) == 11 - 2
    hasher.start_document()
    assert hasher.add("one two").tolist() == []


def test_case_and_punctuation_are_ignored_and_order_is_not() -> None:
    hasher = NgramHasher(3)
    first = hasher.add("One two, three!").tolist()
    hasher.start_document()
    assert hasher.add("one _TWO_ (three)").tolist() == first
    hasher.start_document()
    assert hasher.add("two one three").tolist() != first


def test_a_word_of_hindi_is_one_word() -> None:
    assert len(NgramHasher(3).add("हिन्दी भाषा में लिखा")) == 2


@pytest.mark.parametrize("end", range(0, 43, 7))
def test_the_division_into_chunks_makes_no_difference(end: int) -> None:
    hasher = NgramHasher(4)
    expected = hasher.add(TEXT).tolist()
    end = TEXT.find(" ", end)
    hasher.start_document()
    assert hasher.add(TEXT[:end]).tolist() + hasher.add(TEXT[end:]).tolist() == expected


def test_few_words_are_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = NgramHasher(2).add(TEXT).tolist()
    monkeypatch.setattr(ngrams, "_MOST_WORDS", 2)
    hasher = NgramHasher(2)
    assert hasher.add(TEXT).tolist() == expected
    assert len(hasher._words) <= 2
    hasher.add("x" * 100)
    assert max(map(len, hasher._words)) < 100
