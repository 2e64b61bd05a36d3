"""Tables of the report are valid HTML, with numbers to the right and labels for narrow screens."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from bertkit.evaluation.html_tables import html_matrix, html_table
from bertkit.report.style import contrast

THEMES = {"light": ("23262e", (36, 97, 143), "ffffff"), "dark": ("e8eaee", (125, 180, 221), "16181d")}
"""Ink, shade and page, as in the style of the page."""


def parts(colour: str) -> list[int]:
    return [int(colour[start : start + 2], 16) for start in (0, 2, 4)]


def test_cells_know_their_columns_and_kinds() -> None:
    table = ET.fromstring(html_table("a caption", ("", "f1", "text"), [("no <b>", 0.5, "x"), ("yes", 0.25, "y")]))
    assert table.findtext(".//caption") == "a caption"
    assert [cell.text for cell in table.findall(".//tbody/tr/th")] == ["no <b>", "yes"]
    cells = table.findall(".//tbody/tr/td")
    assert [(cell.text, cell.attrib["class"], cell.attrib["data-label"]) for cell in cells[:2]] == [
        ("0.5000", "number", "f1"),
        ("x", "text", "text"),
    ]
    assert not table.findall(".//table[@class]")


def test_a_table_with_long_texts_stacks_on_a_phone() -> None:
    table = ET.fromstring(html_table("c", ("id", "text"), [("1", "long")], stacks=True))
    assert table.find("table[@class='stack']") is not None


@pytest.mark.parametrize("theme", THEMES)
def test_counts_can_be_read_on_the_strongest_shade(theme: str) -> None:
    ink, shade, page = THEMES[theme]
    matrix = html_matrix(["a", "b"], [[7, 0], [1, 1]])
    alpha = max(float(each) for each in re.findall(r"var\(--shade\), ([0-9.]+)", matrix))
    background = [alpha * each + (1 - alpha) * other for each, other in zip(shade, parts(page), strict=True)]
    red, green, blue = (each / 255 for each in background)
    one, two, three = (each / 255 for each in parts(ink))
    assert contrast((red, green, blue), (one, two, three)) >= 4.5
