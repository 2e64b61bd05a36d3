"""Articles of MediaWiki dumps: which pages are read, what is left of the markup, and XML that is not a dump."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.formats import mediawiki
from bertkit.formats.mediawiki import read_mediawiki

pytest.importorskip("mwparserfromhell", reason="reads dumps of MediaWiki")

PATH = Path("dump.xml")
SITE = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" xml:lang="de">
<siteinfo><namespaces><namespace key="0" /><namespace key="6">Datei</namespace>
<namespace key="14">Kategorie</namespace><namespace key="1">Diskussion</namespace></namespaces></siteinfo>
"""


def page(text: str, *, ns: int = 0, more: str = "") -> str:
    return (
        f"<page><title>T</title><ns>{ns}</ns>{more}<revision><model>wikitext</model>"
        f"<text>{html.escape(text)}</text></revision></page>\n"
    )


def read(*pages: str, size: int = 10**9) -> list[str]:
    xml = SITE + "".join(pages) + "</mediawiki>"
    return list(read_mediawiki(PATH, (xml[at : at + size] for at in range(0, len(xml), size))))


@pytest.mark.parametrize(
    ("wiki_text", "text"),
    [
        ("'''Bold''' and ''italic'' [[b|link]]s, [[plain]].", "Bold and italic links, plain."),
        ('A.<ref name="x">Smith {{cite|a=b}}</ref> B.{{cite}} C.<!-- no -->', "A. B. C."),
        ("See [[wikt:war|the word]] and [[art: a history]].", "See the word and art: a history."),
        ("[[File:A.jpg|thumb|A [[b]] caption.]][[Datei:A.jpg|x]]A.[[Kategorie:K]][[de:A]]\n[[Category:K]]", "A."),
        ("[[Bild:A.jpg|thumb|200px|A caption]]A [[:Kategorie:K]] and [[:en:B]].", "A Kategorie:K and en:B."),
        ('{| class="x"\n|-\n| cell\n|}\nA.', "A."),
        ("One.\n== History ==\nTwo.\n* first\n* second", "One.\n\nHistory\n\nTwo.\n\nfirst\n\nsecond"),
        ("[http://x.org more] and http://x.org H<sub>2</sub>O &amp; x&nbsp;y", "more and  H2O & x\xa0y"),
        ("half a character: &#xD800; &#55357;", "half a character: \ufffd \ufffd"),
        ("__NOTOC__<nowiki>[[x]]</nowiki> <math>x^2</math>y", "[[x]] y"),
        ("{{unclosed [[also", "{{unclosed [[also"),
    ],
    ids=[
        "links",
        "footnotes",
        "other wikis",
        "files",
        "other names",
        "tables",
        "headings",
        "entities",
        "surrogates",
        "nowiki",
        "broken",
    ],
)
def test_markup_is_removed(wiki_text: str, text: str) -> None:
    assert read(page(wiki_text)) == [text]


@pytest.mark.parametrize("size", [1, 7, 10**9])
def test_only_articles_are_read_however_the_stream_is_divided(size: int) -> None:
    talk, redirect = page("Talk.", ns=1), page("#REDIRECT [[A]]", more='<redirect title="A" />')
    assert read(page("One &amp; 한글."), talk, redirect, page("Two."), size=size) == ["One & 한글.", "Two."]


def test_the_last_revision_is_read() -> None:
    both = page("Old.").replace("</page>", "<revision><text>New.</text></revision></page>")
    assert read(both) == ["New."]


def test_pages_are_read_one_at_a_time() -> None:
    def chunks() -> list[str]:
        return [SITE, page("One."), page("Two."), "</broken>"]

    documents = read_mediawiki(PATH, iter(chunks()))
    assert [next(documents), next(documents)] == ["One.", "Two."]
    with pytest.raises(BertkitError, match="not XML, or cut off"):
        next(documents)


@pytest.mark.parametrize(
    ("xml", "message"),
    [
        (SITE + page("One.")[:60], r"dump\.xml, line \d: not XML, or cut off"),
        ("", "not XML, or cut off"),
        ("<rss><item/></rss>", "is XML with the root <rss>, not a dump of MediaWiki"),
        ('<!DOCTYPE m [<!ENTITY a "b">]><mediawiki/>', "has a document type declaration"),
    ],
)
def test_other_xml_is_an_error_of_one_line(xml: str, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        list(read_mediawiki(PATH, [xml]))


def test_a_page_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mediawiki, "LONGEST_PAGE", 99)
    assert read(page("x" * 99)) == ["x" * 99]
    with pytest.raises(BertkitError, match="a page has more than 99 characters"):
        read(page("x" * 100))
