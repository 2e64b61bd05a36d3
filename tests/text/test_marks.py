"""Words with combining marks."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest

from bertkit.text.marks import list_marks, word_pattern


def test_all_marks_of_unicode_are_there() -> None:
    assert list_marks() == "".join(
        each for each in map(chr, range(sys.maxunicode)) if unicodedata.category(each).startswith("M")
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("हिन्दी, भाषा", ["हिन्दी", "भाषा"]),
        ("Cafe\u0301 na\u0308ive!", ["Cafe\u0301", "na\u0308ive"]),
        ("one_2 - two", ["one_2", "two"]),
        ("\u0301", []),
    ],
)
def test_a_word_keeps_its_marks(text: str, words: list[str]) -> None:
    assert re.findall(word_pattern(), text) == words
