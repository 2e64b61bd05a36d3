from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from bertkit.evaluation.drawings import draw_calibration, draw_intervals
from bertkit.metrics.calibration import Bin

BINS = [
    Bin(low=0.5, high=0.6, count=7, confidence=0.55, accuracy=0.25),
    Bin(low=0.9, high=1.0, count=28, confidence=0.95, accuracy=1.0),
]


def circles(svg: str) -> list[ET.Element]:
    return ET.fromstring(svg).findall("circle")


def test_calibration_has_a_dot_per_bin_at_its_confidence_and_accuracy() -> None:
    first, second = circles(draw_calibration(BINS))
    assert float(first.attrib["cx"]) == pytest.approx(44 + 0.55 * 260, abs=0.06)
    assert float(first.attrib["cy"]) == pytest.approx(12 + 0.75 * 260, abs=0.06)
    assert float(second.attrib["cy"]) == 12
    assert float(first.attrib["r"]) == pytest.approx(3 + 5 * (7 / 28) ** 0.5)
    assert float(second.attrib["r"]) == 8
    assert first.findtext("title") == "7 predictions, confidence 55.0%, accuracy 25.0%"


def test_intervals_are_drawn_on_one_scale() -> None:
    svg = ET.fromstring(draw_intervals([("f1", 0.5, 0.25, 0.75), ("pearson", -0.5, -1.0, 0.5)], "Scores"))
    ranges = [line for line in svg.findall("line") if line.attrib["class"] == "range"]
    ends = [(float(line.attrib["x1"]), float(line.attrib["x2"])) for line in ranges]
    assert ends[0] == pytest.approx((110 + 300 * 1.25 / 2, 110 + 300 * 1.75 / 2), abs=0.06)
    assert ends[1] == pytest.approx((110, 110 + 300 * 1.5 / 2), abs=0.06)
    texts = [text.text for text in svg.findall("text")]
    assert texts == ["f1", "0.5000 (0.2500 to 0.7500)", "pearson", "-0.5000 (-1.0000 to 0.5000)"]


def test_long_names_and_negative_intervals_have_room() -> None:
    """In DejaVu Sans of 12 px a letter of a name is 7.1 px wide, one of these figures 6.2 px."""
    rows = [("accuracy_mismatched", -0.1234, -0.4, -0.1), ("pearson", -0.5, -1.0, -0.2)]
    svg = ET.fromstring(draw_intervals(rows, "Scores"))
    for text in svg.findall("text"):
        x, letters = float(text.attrib["x"]), len(text.text or "")
        if text.attrib.get("text-anchor") == "end":
            assert x - 7.1 * letters >= 0
        else:
            assert x + 6.2 * letters <= float(svg.attrib["width"])


def test_an_undefined_value_has_no_mark() -> None:
    nan = float("nan")
    svg = ET.fromstring(draw_intervals([("pearson", nan, nan, nan), ("spearman", 0.5, 0.25, 0.75)], "Scores"))
    assert len(svg.findall("circle")) == 1 and [text.text for text in svg.findall("text")][1] == "undefined"


def test_titles_and_names_are_escaped() -> None:
    svg = ET.fromstring(draw_intervals([("<b>&", 0.5, 0.25, 0.75)], 'a "title" <b>'))
    assert svg.findtext("title") == svg.attrib["aria-label"] == 'a "title" <b>'
    assert svg.findtext("text") == "<b>&"
