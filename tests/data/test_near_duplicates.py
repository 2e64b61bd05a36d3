"""Documents that repeat most of an earlier one."""

from __future__ import annotations

import random

import pytest

from bertkit.data.near_duplicates import NearDuplicates

pytest.importorskip("datasketch", reason="finds near-duplicates")


def change(text: str, share: float) -> str:
    """The text with this share of its words replaced, in one place."""
    words = text.split()
    count = int(share * len(words))
    return " ".join([*(f"new{number}" for number in range(count)), *words[count:]])


def repeats(documents: NearDuplicates, text: str) -> bool:
    documents.start_document()
    middle = text.find(" ", 500) if len(text) > 500 else 0
    documents.add(text[:middle])
    documents.add(text[middle:])
    is_repeated = documents.is_repeated()
    if not is_repeated:
        documents.keep()
    return is_repeated


def test_documents_with_few_changes_are_found_and_others_are_not() -> None:
    rng = random.Random(13)
    texts = [" ".join(f"word{rng.randrange(999)}" for _ in range(300)) for _ in range(40)]
    documents = NearDuplicates()
    assert not any(repeats(documents, text) for text in texts)
    assert all(repeats(documents, text) for text in texts)
    assert all(repeats(documents, change(text, 0.02)) for text in texts)
    # A quarter of the words replaced leaves 60 % of the sequences in common.
    assert not any(repeats(documents, change(text, 0.25)) for text in texts)


def test_documents_of_few_words_are_not_compared() -> None:
    documents = NearDuplicates()
    assert not repeats(documents, "one two three four")
    assert not repeats(documents, "one two three four")
    assert not documents._kept, "a corpus can have millions of them, and each would take 4 kB"
