"""Lines that occur in many documents, such as menus and licences: found in one pass over the text, dropped in the next.

Lines are compared without the white space at their ends, by hashes of 64 bits. Which lines are dropped depends on the
text alone, so every worker drops the same.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Set

from bertkit.data.document_hash import hash_text

SHORTEST_LINE = 20
"""Characters. Shorter lines, such as headings, repeat by chance."""

_MOST_LINES = 1_000_000
"""Different lines that are counted at a time, in 150 MB."""


def hash_lines(text: str) -> Iterator[int]:
    """The hash of every line that is long enough to be compared."""
    for line in text.split("\n"):
        stripped = line.strip()
        if len(stripped) >= SHORTEST_LINE:
            yield hash_text(stripped)


def without_lines(text: str, dropped: Set[int]) -> tuple[str, int]:
    """``text`` without the lines whose hashes are ``dropped``, and how many they are."""
    if not dropped:
        return text, 0
    lines = text.split("\n")
    kept = [line for line in lines if dropped.isdisjoint(hash_lines(line))]
    return "\n".join(kept), len(lines) - len(kept)


class RepeatedLines:
    """The lines that occur in ``least`` documents or more; with None nothing is counted.

    Text with up to a million different lines is counted exactly. Beyond that the lines that are in the fewest documents
    so far are forgotten, and counted from one again when they come back. A document of more than a million lines counts
    as several.
    """

    def __init__(self, least: int | None) -> None:
        self.least = least
        self._counts: Counter[int] = Counter()
        self.start_document()

    def start_document(self) -> None:
        """Begin a document. The one before it does not count unless it was kept."""
        self._document = array("Q")

    def add(self, text: str) -> None:
        """Add the next chunk of the document."""
        if self.least is None:
            return
        self._document.extend(hash_lines(text))
        if len(self._document) > _MOST_LINES:
            self.keep()
            self.start_document()

    def keep(self) -> None:
        """Count the lines of the document."""
        self._counts.update(set(self._document))
        least = 2
        while len(self._counts) > _MOST_LINES:
            self._counts = Counter({line: count for line, count in self._counts.items() if count >= least})
            least += 1

    def found(self) -> frozenset[int]:
        """The hashes of the lines that are to be left out."""
        if self.least is None:
            return frozenset()
        return frozenset(line for line, count in self._counts.items() if count >= self.least)
