"""The text of HTML and Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.formats import markup
from bertkit.formats.markup import read_html, read_markdown

PATH = Path("page")


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h1>Head</h1><p>One <b>two</b>\n  three.</p><p>Four.", "Head\n\nOne two three.\n\nFour."),
        ("<div>A<br>b<ul><li>x<li>y</ul>c</div>", "A\n\nb\n\nx\n\ny\n\nc"),
        ("<head><title>T</title><style>s{}</style></head><nav>Menu</nav>A.<script>1</script><footer>F</footer>", "A."),
        ("A &amp; B &lt;p&gt; &#8217; caf&eacute;", "A & B <p> \u2019 café"),
        ("A.<pre>code</pre><table><tr><td>1</table><!-- c -->B", "A.\n\nB"),
        ("<center>A</center><center>B</center>C<form>D</form>E", "A\n\nB\n\nC\n\nD\n\nE"),
        ("<li>first<table><tr><td>x</table>second<nav>y</nav>third", "first\n\nsecond\n\nthird"),
        ("<p>unclosed <b>tags <i>everywhere", "unclosed tags everywhere"),
        ("<form><h1>Head</h1><p>A.</p><select><option>x</select><button>Go</button></form>", "Head\n\nA."),
        ("<table><tr><td>An essay.<td>Its end.</table>", "An essay.\n\nIts end."),
        ("a\0b", "ab"),
        ("", ""),
    ],
    ids=[
        "headings",
        "lists",
        "not text",
        "entities",
        "code",
        "blocks",
        "dropped blocks",
        "unclosed",
        "form",
        "layout",
        "nul",
        "empty",
    ],
)
def test_html_becomes_paragraphs(html: str, text: str) -> None:
    pytest.importorskip("selectolax", reason="reads HTML")
    assert list(read_html(PATH, [html[:7], html[7:]])) == [text]


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("# Head\nOne *two*\nthree.\n\nHead\n====\n- a\n- b\n", "Head\n\nOne two three.\n\nHead\n\na\n\nb"),
        ("---\ntitle: x\ntags: [a]\n---\nA.\n", "A."),
        ('+++\ntitle = "x"\n+++\nA.\n', "A."),
        ("---\nA.\n\n---\n\nB.\n", "A.\n\nB."),
        ("A.\n```python\ncode\n```\nB.\n\n    more code\n\n~~~\n# not a heading\n~~~\n", "A.\n\nB."),
        ('See [the page](http://x.org "t") and `code`. ![alt](a.png)', "See the page and code."),
        ("A.\n\n<div>x</div>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nB &amp; C.", "A.\n\nB & C."),
        ("> Quoted\n> text.", "Quoted text."),
        ("One<br>two<br/>three H<sub>2</sub>O", "One two three H2O"),
        ("", ""),
    ],
    ids=["headings", "yaml", "toml", "rules", "code", "links", "tables", "quote", "line breaks", "empty"],
)
def test_markdown_becomes_paragraphs(markdown: str, text: str) -> None:
    assert list(read_markdown(PATH, [markdown[:5], markdown[5:]])) == [text]


def test_a_file_that_is_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markup, "LONGEST_MARKDOWN", 9)
    assert list(read_markdown(PATH, ["x" * 9])) == ["x" * 9]
    with pytest.raises(BertkitError, match="page is longer than 9 characters"):
        list(read_markdown(PATH, ["x" * 9, "x"]))
