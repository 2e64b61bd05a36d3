r"""Combining marks, such as the vowels of Hindi: they belong to the letter before them, and ``\w`` leaves them out.

Without them a word of Hindi falls into several, and so does a word whose accents are characters of their own.
"""

from __future__ import annotations

import unicodedata
from functools import cache

_MAY_BE_MARKS = (range(0x300, 0x20000), range(0xE0100, 0xE01F0))
"""Unicode has no marks elsewhere; to ask for all its 1.1 million characters takes 0.3 s."""


@cache
def list_marks() -> str:
    """All marks of Unicode, as one text."""
    codes = (code for part in _MAY_BE_MARKS for code in part)
    return "".join(each for each in map(chr, codes) if unicodedata.category(each).startswith("M"))


@cache
def word_pattern() -> str:
    r"""A regular expression for a word: letters, digits and ``_``, with the marks that follow them."""
    return rf"\w+(?:[{list_marks()}]+\w*)*"
