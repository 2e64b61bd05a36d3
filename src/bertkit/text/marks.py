r"""Combining marks, such as the vowels of Hindi: they belong to the letter before them, and ``\w`` leaves them out.

Without them a word of Hindi falls into several, and so does a word whose accents are characters of their own.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_MAY_BE_MARKS = (range(0x300, 0x20000), range(0xE0100, 0xE01F0))
"""Unicode has no marks elsewhere; to ask for all its 1.1 million characters takes 0.3 s."""

_FIRST = re.compile("[\u0300-\U0010ffff]")


def remove_marks(text: str) -> str:
    """The text without its marks."""
    return text.translate(_removal()) if _FIRST.search(text) else text


@cache
def words_regex(others: str = "") -> re.Pattern[str]:
    r"""``word_pattern`` and further alternatives, such as ``|[^\w\s]``; made at the first use, in 0.08 s."""
    return re.compile(word_pattern() + others)


@cache
def list_marks() -> str:
    """All marks of Unicode, as one text."""
    codes = (code for part in _MAY_BE_MARKS for code in part)
    return "".join(each for each in map(chr, codes) if unicodedata.category(each).startswith("M"))


@cache
def word_pattern() -> str:
    r"""A regular expression for a word: letters, digits and ``_``, with the marks that follow them."""
    return rf"\w+(?:[{list_marks()}]+\w*)*"


@cache
def _removal() -> dict[int, None]:
    return dict.fromkeys(map(ord, list_marks()))
