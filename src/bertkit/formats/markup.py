"""The text of HTML pages and Markdown files: paragraphs and headings, each followed by a blank line.

HTML is parsed by selectolax (the Lexbor engine), which takes any HTML as a browser does, and Markdown by
markdown-it-py, which follows CommonMark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.errors import data_error
from bertkit.optional import require

if TYPE_CHECKING:
    from markdown_it.token import Token
    from selectolax.lexbor import LexborHTMLParser

LONGEST_HTML = 1 << 24
LONGEST_MARKDOWN = 1 << 22
"""Characters of a file, which is parsed as a whole: about 20 bytes of memory per character of HTML, 100 of Markdown."""

_NOT_TEXT = [
    *("head", "script", "style", "noscript", "template", "svg", "iframe", "pre", "nav", "footer"),
    *("button", "select", "textarea"),
]
_BLOCKS = (
    "address, article, aside, blockquote, br, caption, center, dd, details, div, dl, dt, fieldset, figcaption, figure,"
    " footer, form, h1, h2, h3, h4, h5, h6, header, hr, legend, li, main, menu, nav, ol, p, pre, section, summary,"
    " table, td, th, ul"
)
_BREAK = "\0"
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n[\w\"'-]+[ \t]*[:=].*?\n\1[ \t]*(?:\n|\Z)", re.DOTALL)


def read_html(path: Path, chunks: Iterable[str]) -> Iterator[str]:
    """The text of a page, without scripts, code, tables, controls of forms, navigation and footer.

    A page that has no other text has that of its tables: old pages are laid out in one.
    """
    lexbor = require("selectolax.lexbor", extra="importers", purpose=str(path))
    html = _whole(path, chunks, LONGEST_HTML)
    text = _text_without(lexbor.LexborHTMLParser(html), [*_NOT_TEXT, "table"])
    yield text or _text_without(lexbor.LexborHTMLParser(html), _NOT_TEXT)


def _text_without(page: LexborHTMLParser, dropped: list[str]) -> str:
    for block in page.css(_BLOCKS):  # also those that are dropped: the text goes on after them in another paragraph
        # The parser reads NUL as U+FFFD, so that in the tree only what is inserted here is one.
        block.insert_before(_BREAK)
        block.insert_after(_BREAK)
    page.strip_tags(dropped)
    return _join(("" if page.body is None else page.body.text()).split(_BREAK))


def read_markdown(path: Path, chunks: Iterable[str]) -> Iterator[str]:
    """The text of a file, without front matter, code blocks, tables and HTML."""
    text = _FRONT_MATTER.sub("", _whole(path, chunks, LONGEST_MARKDOWN))
    markdown = require("markdown_it", extra="importers", purpose=str(path), library="markdown-it-py")
    parser = markdown.MarkdownIt("commonmark").enable("table")
    yield _join(_paragraphs(parser.parse(text)))


def _paragraphs(tokens: Iterable[Token]) -> Iterator[str]:
    in_table = False
    for token in tokens:
        if token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"
        elif token.type == "inline" and not in_table:
            yield "".join(_texts(token.children or []))


def _texts(tokens: Iterable[Token]) -> Iterator[str]:
    """The text of a paragraph. Code within a sentence is part of it; the description of an image is not."""
    for token in tokens:
        is_break = token.type == "html_inline" and token.content.lower().startswith("<br")
        if token.type in ("softbreak", "hardbreak") or is_break:
            yield "\n"
        elif token.type in ("text", "code_inline"):
            yield token.content


def _join(paragraphs: Iterable[str]) -> str:
    return "\n\n".join(filter(None, (" ".join(each.split()) for each in paragraphs)))


def _whole(path: Path, chunks: Iterable[str], longest: int) -> str:
    held: list[str] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size > longest:
            raise data_error(f"{path} is longer than {longest:,} characters. Divide it into several files.")
    return "".join(held)
