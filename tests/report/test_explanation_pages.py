"""Pages that show attention and saliency."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser

from bertkit.report.explanation_pages import render_attention, render_saliency

TOKENS = ("[CLS]", "<b>", "river", "[SEP]")


def weights() -> NDArray[np.float32]:
    raw = np.random.default_rng(7).random((3, 2, 4, 4)).astype(np.float32)
    return np.asarray(raw / raw.sum(axis=-1, keepdims=True), dtype=np.float32)


def test_the_page_has_every_weight_and_shows_the_mean_of_the_last_layer() -> None:
    page = LexborHTMLParser(render_attention(TOKENS, weights(), model="m", notes=["a note"]))
    data = page.css_first("#weights")
    assert data is not None
    assert np.array(json.loads(data.text())) == pytest.approx(weights(), abs=5e-4)
    shown = [float(re.findall(r"opacity: ([\d.]+)", each.attributes["style"] or "")[0]) for each in page.css("line")]
    assert np.array(shown).reshape(4, 4) == pytest.approx(weights()[-1].mean(axis=0), abs=5e-4)
    assert [len(page.css(f"#{name} option")) for name in ("layer", "head")] == [3, 3]


def test_contributions_have_a_colour_and_a_row_the_strongest_first() -> None:
    values = np.array([0.0, -2.0, 1.0, 0.5])
    page = LexborHTMLParser(render_saliency(TOKENS, values, model="m", prediction="good", notes=[]))
    spans = [each.attributes["style"] or "" for each in page.css(".token")]
    assert ["against" in each for each in spans] == [True, True, False, False]
    assert "1.00)" in spans[1]
    assert [each.text() for each in page.css("tbody td")] == ["-2.000", "+1.000", "+0.500", "+0.000"]


def test_no_token_becomes_markup_and_nothing_is_loaded() -> None:
    for html in (
        render_attention(TOKENS, weights(), model="<m>", notes=["<i>"]),
        render_saliency(TOKENS, np.ones(4), model="<m>", prediction="</h1><script>", notes=["<i>"]),
    ):
        assert "<b>" not in html
        assert "<m>" not in html
        assert "<i>" not in html
        assert "</h1><script>" not in html
        assert not re.search(r"(src|href)=", html)
