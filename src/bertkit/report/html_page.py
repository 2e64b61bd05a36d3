"""A page of HTML that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Iterable

from bertkit.escaping import to_html


def html_page(title: str, style: str, body: Iterable[str]) -> str:
    """The page with this ``title``, ``style`` (CSS), and the elements of its ``body``."""
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{to_html(title)}</title><style>{style}</style>"
    lines = ("<!DOCTYPE html>", '<html lang="en">', f"<head>{head}</head>", "<body>", "<main>", *body, "</main>")
    return "\n".join((*lines, "</body>", "</html>", ""))
