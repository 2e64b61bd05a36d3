"""The scripts and the languages of a text, counted in characters.

Scripts are Unicode's property Script of every character, by fontTools. Languages are guessed by py3langid (Lui and
Baldwin 2012, "langid.py"), which has its model of 139 languages in a package of 4 MB and needs NumPy alone.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from types import ModuleType

from bertkit.optional import load

UNKNOWN = "unknown"
"""The language of a chunk with too few letters."""

_GUESSED_CHARACTERS = 500
"""From the middle of a chunk, in 0.1 ms. A chunk has up to 200,000 characters and most often one language."""

_LEAST_LETTERS = 20
_NO_SCRIPT = ("Common", "Inherited", "Unknown")
"""Digits, punctuation, white space and marks that all scripts share."""


WITH_MARKS = {
    *("Bengali", "Devanagari", "Gujarati", "Gurmukhi", "Kannada", "Khmer", "Lao", "Malayalam", "Myanmar", "Oriya"),
    *("Sinhala", "Tamil", "Telugu", "Thai", "Tibetan"),
    *("Arabic", "Hebrew", "Hiragana", "Katakana"),
}
"""Scripts that write vowels, tones or voiced consonants as marks, which Unicode counts as accents: without them words
become others, such as が, which becomes か."""


class ScriptCounter:
    """Counts characters by script, without those that scripts share."""

    def __init__(self) -> None:
        self._characters: Counter[str] = Counter()

    def add(self, text: str) -> None:
        """Count the characters of ``text``."""
        self._characters.update(text)

    def counts(self) -> dict[str, int]:
        """Characters by the English name of their script, the most frequent script first."""
        unicode = load("fontTools.unicodedata")
        found: Counter[str] = Counter()
        for character, count in self._characters.items():
            found[unicode.script_name(unicode.script(character))] += count
        return {script: count for script, count in found.most_common() if script not in _NO_SCRIPT}


class LanguageCounter:
    """Counts characters by the language of the chunk that they are in; counts nothing if py3langid is missing."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._library = find_library()

    def add(self, chunk: str) -> None:
        """Count the characters of ``chunk``, whose language is that of its middle."""
        if self._library is None:
            return
        begin = max(0, len(chunk) - _GUESSED_CHARACTERS) // 2
        middle = chunk[begin : begin + _GUESSED_CHARACTERS]
        has_letters = sum(map(str.isalpha, middle)) >= _LEAST_LETTERS
        self._counts[self._library.classify(middle)[0] if has_letters else UNKNOWN] += len(chunk)

    def counts(self) -> dict[str, int]:
        """Characters by the ISO 639-1 code of their language, the most frequent language first."""
        return {language: count for language, count in self._counts.most_common() if count}


def find_library() -> ModuleType | None:
    """The library that guesses languages; None if it is not installed."""
    with suppress(ImportError):
        return load("py3langid")
    return None
