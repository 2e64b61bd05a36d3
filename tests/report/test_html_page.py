from __future__ import annotations

import re

from bertkit.report.html_page import html_page


def test_a_page_is_complete_and_its_title_is_escaped() -> None:
    page = html_page("a < b", "p { color: red }", ["<p>one</p>", "<p>two</p>"])
    assert page.startswith("<!DOCTYPE html>\n<html lang=")
    assert "<title>a &lt; b</title><style>p { color: red }</style>" in page
    assert re.search(r"<main>\n<p>one</p>\n<p>two</p>\n</main>", page)
    assert page.endswith("</html>\n")
