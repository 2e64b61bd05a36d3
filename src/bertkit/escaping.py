"""Text of files, models and names for each medium: nothing in it can control a terminal or break a page.

Every string that is shown goes through the function of its medium. Cells of CSV and TSV are made safe where they are
written, in ``inference.prediction_formats``.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata

_HARMLESS = ("\u200c", "\u200d")
"""Joiners, which emoji, Persian and Indic scripts need. Other format characters turn or hide text."""

_UNSAFE_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Control and format characters, halves of characters, and separators of lines."""

_MARKDOWN = re.compile(r"[\\|<>&`*~\[\]]|(?<!\w)_|_(?!\w)")
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")


class Markup(str):
    """Text of bertkit's own that is Markdown already."""


def printable(text: str) -> str:
    """The text for a terminal: control characters, which could come from a file or a name, as Python spells them.

    So are those that reverse text, such as U+202E.
    """
    return _NOT_ASCII.sub(lambda match: repr(match[0])[1:-1] if _is_unsafe(match[0]) else match[0], text)


def to_json(value: object, *, indent: int | None = None) -> str:
    """JSON for a terminal. The characters that ``printable`` escapes are escaped as JSON does, so the value is the
    same."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return _NOT_ASCII.sub(lambda match: json.dumps(match[0])[1:-1] if _is_json_unsafe(match[0]) else match[0], text)


def to_markdown(text: str) -> str:
    """The text within a line or a cell of Markdown: one line, without HTML, and without markup unless it is Markup."""
    if isinstance(text, Markup):
        return " ".join(text.replace("|", "\\|").split())
    return _MARKDOWN.sub(_markdown_entity, printable(" ".join(text.split())))


def to_html(text: str) -> str:
    """The text within an element or a quoted attribute of HTML."""
    return html.escape(printable(text))


def _is_unsafe(character: str) -> bool:
    return unicodedata.category(character) in _UNSAFE_CATEGORIES and character not in _HARMLESS


def _is_json_unsafe(character: str) -> bool:
    """Line feeds are those between the lines of the document: ``json.dumps`` escapes those of strings."""
    return character != "\n" and _is_unsafe(character)


def _markdown_entity(match: re.Match[str]) -> str:
    entity = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(match[0])
    return entity or f"\\{match[0]}"
