"""Files of WikiExtractor and of Project Gutenberg."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.formats import plain_text
from bertkit.formats.plain_text import drop_gutenberg_frame, read_wiki_extractor

PATH = Path("wiki_00")
START = "*** START OF THE PROJECT GUTENBERG EBOOK EMMA ***\n"
END = "*** END OF THE PROJECT GUTENBERG EBOOK EMMA ***\n"


def test_articles_end_at_their_end_tags() -> None:
    lines = ['<doc id="1" title="A">\n', "A\n", "\n", "One &amp; two.\n", "</doc>\n", "\n", '<doc id="2">\n', "</doc>"]
    assert list(read_wiki_extractor(PATH, lines)) == ["A\n\nOne & two.", ""]


def test_an_article_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BertkitError, match="wiki_00 is cut off"):
        list(read_wiki_extractor(PATH, ['<doc id="1">\n', "A\n"]))
    monkeypatch.setattr(plain_text, "LONGEST_ARTICLE", 9)
    with pytest.raises(BertkitError, match="an article has more than 9 characters"):
        list(read_wiki_extractor(PATH, ['<doc id="1">\n', "A234567890\n", "</doc>"]))


@pytest.mark.parametrize("start", [START, START.replace("*** ", "***").replace("THE", "THIS").title()])
@pytest.mark.parametrize(
    "end", [END, "End of the Project Gutenberg EBook of Emma\n", "End of Project Gutenberg's Emma\n", ""]
)
def test_what_is_outside_the_book_is_dropped(start: str, end: str) -> None:
    after = ["Licence\n"] if end else []
    lines, found = drop_gutenberg_frame(iter(["Title\n", start, "One.\n", "Two.\n", end, *after]))
    assert (list(filter(None, lines)), found) == (["One.\n", "Two.\n"], True)


@pytest.mark.parametrize("text", [["One.\n", END, "Two.\n"], ["x\n"] * 600 + [START, "One.\n"], []])
def test_other_texts_are_not_changed(text: list[str]) -> None:
    lines, found = drop_gutenberg_frame(iter(text))
    assert (list(lines), found) == (text, False)
