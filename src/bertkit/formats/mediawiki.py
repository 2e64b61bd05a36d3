"""The articles of MediaWiki XML dumps (``*-pages-articles.xml.bz2``), as text without markup.

The XML is parsed as a stream, and one page is in memory at a time. Wiki text is parsed by mwparserfromhell, the parser
that most tools for Wikipedia use; its own ``strip_code`` keeps footnotes, tables and the options of images, so the tree
is read here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from bertkit.errors import data_error
from bertkit.optional import require

LONGEST_PAGE = 1 << 24
"""Characters of one page. MediaWiki itself takes at most 2 MB of wiki text."""

_DROPPED_TAGS = {
    *("ref", "references", "table", "gallery", "imagemap", "math", "chem", "timeline", "score", "syntaxhighlight"),
    *("source", "code", "pre", "templatestyles"),
}
_FILES_AND_CATEGORIES = ("6", "14")
_FILE = re.compile(r"[^:]+:.+\.(jpe?g|png|svg|gif|tiff?|webp|og[gv]|pdf|webm)", re.IGNORECASE)
"""A file by its suffix: dumps name one prefix, such as Datei, and old pages have others, such as Bild."""

_LANGUAGE_LINK = re.compile(r"[a-z]{2,3}(-[a-z]+)*:\S")
_MAGIC_WORD = re.compile(r"__[A-Z]+__")
_BLANK_LINES = re.compile(r"\s*\n\s*\n\s*")


def read_mediawiki(path: Path, chunks: Iterable[str]) -> Iterator[str]:
    """The text of every article: of its newest revision, without templates, tables, footnotes, images and categories.

    Redirects and pages of other namespaces, such as talk, are left out.
    """
    parser = require("mwparserfromhell", extra="importers", purpose=str(path))
    pages = _Pages(path)
    for chunk in chunks:
        pages.feed(chunk)
        for wiki_text in pages.take():
            yield _clean(parser, wiki_text, pages.dropped_prefixes)
    pages.feed("", is_last=True)


class _Pages:
    """Collects the wiki text of pages from a stream of XML."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dropped_prefixes = {"file", "image", "category"}
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add
        # A declaration of entities can expand a small file without limit, and no dump has one.
        self._parser.StartDoctypeDeclHandler = self._refuse_declaration
        self._is_first = True
        self._held: list[str] | None = None
        self._size = 0
        self._namespace_key = ""
        self._page: dict[str, str] = {}
        self._done: list[str] = []

    def feed(self, chunk: str, *, is_last: bool = False) -> None:
        try:
            self._parser.Parse(chunk, is_last)
        except expat.ExpatError as error:
            raise data_error(
                f"{self.path}, line {error.lineno:,}: not XML, or cut off ({expat.ErrorString(error.code)})."
            ) from error

    def take(self) -> list[str]:
        """The wiki text of the articles since the last call."""
        done, self._done = self._done, []
        return done

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._is_first and name != "mediawiki":
            raise data_error(f"{self.path} is XML with the root <{name}>, not a dump of MediaWiki. Extract its text.")
        self._is_first = False
        if name == "page":
            self._page = {}
        elif name == "redirect":
            self._page["redirect"] = "yes"
        elif name in ("ns", "model", "text", "namespace"):
            self._held, self._size = [], 0
            self._namespace_key = attributes.get("key", "")

    def _end(self, name: str) -> None:
        held, self._held = self._held, None
        if name == "page" and self._page.get("ns", "0") == "0" and "redirect" not in self._page:
            if self._page.get("model", "wikitext") == "wikitext":
                self._done.append(self._page.get("text", ""))
        elif held is None:
            return
        elif name == "namespace" and self._namespace_key in _FILES_AND_CATEGORIES:
            self.dropped_prefixes.add("".join(held).lower())
        elif name in ("ns", "model", "text"):
            self._page[name] = "".join(held)

    def _add(self, text: str) -> None:
        if self._held is None:
            return
        self._held.append(text)
        self._size += len(text)
        if self._size > LONGEST_PAGE:
            line = self._parser.CurrentLineNumber
            raise data_error(f"{self.path}, line {line:,}: a page has more than {LONGEST_PAGE:,} characters.")

    def _refuse_declaration(self, *_: object) -> None:
        raise data_error(f"{self.path} has a document type declaration; a dump of MediaWiki has none.")


def _clean(parser: Any, wiki_text: str, dropped_prefixes: set[str]) -> str:
    text = "".join(_texts(parser.nodes, parser.parse(wiki_text), dropped_prefixes))
    return _BLANK_LINES.sub("\n\n", _MAGIC_WORD.sub("", text)).strip()


def _texts(nodes: Any, code: Any, dropped_prefixes: set[str]) -> Iterator[str]:
    """The visible text of parsed wiki text. Templates, comments and arguments have none."""
    for node in code.nodes:
        if isinstance(node, nodes.Text):
            yield str(node.value)
        elif isinstance(node, nodes.Heading):
            yield "\n\n"
            yield from _texts(nodes, node.title, dropped_prefixes)
            yield "\n\n"
        elif isinstance(node, nodes.Wikilink):
            if _is_dropped(node, dropped_prefixes):
                continue
            if node.text is not None:
                yield from _texts(nodes, node.text, dropped_prefixes)
            else:  # [[:en:Dog]] is shown without its first colon
                yield "".join(_texts(nodes, node.title, dropped_prefixes)).removeprefix(":")
        elif isinstance(node, nodes.ExternalLink):
            if node.title is not None:
                yield from _texts(nodes, node.title, dropped_prefixes)
        elif isinstance(node, nodes.HTMLEntity):
            yield html.unescape(str(node))  # as HTML has it: half a character, &#xD800;, is U+FFFD
        elif isinstance(node, nodes.Tag):
            yield from _texts_of_tag(nodes, node, dropped_prefixes)


def _is_dropped(link: Any, dropped_prefixes: set[str]) -> bool:
    """Whether a link is a picture, a category, or a link to another language, which has no text in the page."""
    title = str(link.title).strip()
    if title.partition(":")[0].lower() in dropped_prefixes or _FILE.fullmatch(title):
        return True
    return link.text is None and _LANGUAGE_LINK.match(title) is not None


def _texts_of_tag(nodes: Any, tag: Any, dropped_prefixes: set[str]) -> Iterator[str]:
    name = str(tag.tag).strip().lower()
    if name in _DROPPED_TAGS:
        return
    if name in ("br", "p", "li", "dd", "dt", "div", "blockquote"):
        # A list item begins a paragraph of its own, so that it is not read as part of the sentence before it.
        yield "\n\n"
    if tag.contents is not None:
        yield from _texts(nodes, tag.contents, dropped_prefixes)
