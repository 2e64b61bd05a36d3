from __future__ import annotations

import html

import pytest
from jinja2 import UndefinedError
from tests.server.running import get

from bertkit.server.pages import render
from bertkit.server.run import Server


def test_values_are_escaped() -> None:
    operation = {"summary": "<script>alert(1)</script>", "tags": ["a"]}
    page = render("docs.html", paths={"/x": {"get": operation}}, models={}).decode()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize("path", ["/?model=none", f"/attention?model=words&text={'a+' * 99}", "/explain?model=none"])
def test_an_error_is_a_page_in_a_browser_and_json_elsewhere(server: Server, path: str) -> None:
    page = get(server, path, accept="text/html,*/*;q=0.8")
    assert page.status_code >= 400
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert 'class="error"' in page.text
    if path.startswith("/?"):
        return  # for other clients the page is a health route
    reply = get(server, path)
    assert reply.status_code == page.status_code
    assert html.escape(reply.json()["error"], quote=False) in page.text.replace("&#39;", "'").replace("&#34;", '"')


def test_a_forgotten_value_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("docs.html")
