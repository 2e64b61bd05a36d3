from __future__ import annotations

import pytest
from jinja2 import UndefinedError

from bertkit.server.pages import render


def test_values_are_escaped() -> None:
    operation = {"summary": "<script>alert(1)</script>", "tags": ["a"]}
    page = render("docs.html", paths={"/x": {"get": operation}}, models={}).decode()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_forgotten_value_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render("docs.html")
