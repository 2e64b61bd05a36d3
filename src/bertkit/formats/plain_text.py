"""Two forms of plain text that are recognized by their own marker lines: WikiExtractor's and Project Gutenberg's."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from bertkit.errors import data_error

WIKI_EXTRACTOR = '<doc id="'
"""How the output of WikiExtractor begins."""

LONGEST_ARTICLE = 1 << 24
"""Characters; an article must fit into memory."""

_GUTENBERG_START = re.compile(r"\*\*\* ?START OF (?:THE|THIS) PROJECT GUTENBERG EBOOK\b", re.IGNORECASE)
_GUTENBERG_END = re.compile(
    r"\*\*\* ?END OF (?:THE|THIS) PROJECT GUTENBERG EBOOK\b|End of (?:the )?Project Gutenberg(?:'s)? ", re.IGNORECASE
)
_HEADER_LINES = 500
_HEADER_CHARACTERS = 100_000


def read_wiki_extractor(path: Path, lines: Iterable[str]) -> Iterator[str]:
    """The text between each ``<doc ...>`` and ``</doc>``; every line of it is a paragraph."""
    held: list[str] | None = None
    size = 0
    for line in lines:
        if held is None:
            # Between two articles there are only blank lines.
            held = [] if line.startswith(WIKI_EXTRACTOR) else None
            size = 0
        elif line.rstrip() == "</doc>":
            # WikiExtractor escapes the characters of HTML: an article about it has "&lt;doc".
            yield html.unescape("\n\n".join(held))
            held = None
        elif line.strip():
            held.append(line.strip())
            size += len(line)
            if size > LONGEST_ARTICLE:
                raise data_error(f"{path}: an article has more than {LONGEST_ARTICLE:,} characters.")
    if held is not None:
        raise data_error(f"{path} is cut off: its last <doc> has no </doc>.")


def drop_gutenberg_frame(lines: Iterator[str]) -> tuple[Iterator[str], bool]:
    """The lines of a book without the header and the licence of Project Gutenberg, and whether there is such a header.

    Any other text is returned as it is.
    """
    head: list[str] = []
    size = 0
    while len(head) < _HEADER_LINES and size < _HEADER_CHARACTERS and (line := next(lines, "")):
        head.append(line)
        size += len(line)
        if _GUTENBERG_START.match(line):
            return itertools.takewhile(lambda line: not _GUTENBERG_END.match(line), lines), True
    return itertools.chain(head, lines), False
