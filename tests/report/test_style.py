"""The style of plots: text that is shown as it is, legends, atomic files."""

from __future__ import annotations

import re
from itertools import combinations, product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

from bertkit.report import style
from bertkit.report.style import (
    PALETTE,
    add_legend,
    add_shared_legend,
    annotate,
    contrast,
    make_figure,
    mark_change,
    save,
    series_style,
    set_panel_title,
    text_on,
)


def test_text_is_not_parsed_as_a_formula() -> None:
    figure, (panel,) = make_figure(1, width=3, height=2, title="$x_")
    panel.plot([1, 2], label="$y_")
    set_panel_title(panel, "$z_")
    add_legend(panel)
    legend = panel.get_legend()
    assert legend is not None
    texts = [figure.get_suptitle(), panel.get_title(loc="left"), legend.get_texts()[0].get_text()]
    assert texts == ["$x_", "$z_", "$y_"]
    assert not legend.get_texts()[0].get_parse_math()


def test_figure_has_its_panels_side_by_side() -> None:
    figure, panels = make_figure(3, width=6, height=2, title="three")
    assert len(panels) == 3
    assert figure.get_size_inches().tolist() == [6, 2]
    assert not any(panel.spines["top"].get_visible() for panel in panels)


def test_figure_has_several_rows_of_panels_and_one_legend_below_all() -> None:
    figure, panels = make_figure(2, rows=3, width=6, height=6, title="six")
    assert len(panels) == 6
    panels[0].plot([1, 2], label="$a")
    add_shared_legend(panels[0], ncols=2)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    (text,) = legend.get_texts()
    assert (text.get_text(), text.get_parse_math()) == ("$a", False)
    assert legend.get_window_extent().y1 < min(panel.get_window_extent().y0 for panel in panels)


def test_a_legend_is_below_the_panel_and_covers_no_data() -> None:
    figure, (panel,) = make_figure(1, width=5, height=4, title="a title")
    panel.plot([1, 2], label="a")
    panel.plot([2, 1], label="b")
    panel.set_xlabel("step")
    add_legend(panel, ncols=2)
    figure.draw_without_rendering()
    legend = panel.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
    box = legend.get_window_extent()
    assert 0 <= box.y0 < box.y1 <= panel.xaxis.label.get_window_extent().y0
    assert panel.get_window_extent().height > 1.5 * figure.dpi


def test_a_panel_without_names_has_no_legend() -> None:
    _, (panel,) = make_figure(1, width=3, height=2, title="")
    add_legend(panel)
    assert panel.get_legend() is None


def test_a_change_is_marked_by_a_line_with_a_note() -> None:
    _, (panel,) = make_figure(1, width=3, height=2, title="")
    mark_change(panel, 7, "rows of $128")
    assert panel.get_lines()[0].get_xdata() == [7, 7]
    assert panel.texts[0].get_text() == "rows of $128"


def test_series_differ_by_colour_by_marker_and_by_dashes() -> None:
    styles = [series_style(place) for place in range(6)]
    for name in ("color", "marker", "linestyle"):
        assert len({str(style[name]) for style in styles}) == 6
    assert series_style(6) == series_style(0)


def lab(colour: NDArray[np.float64]) -> NDArray[np.float64]:
    """CIELAB of linear RGB, white point D65."""
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    x, y, z = np.cbrt(np.array(matrix) @ colour / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


COLOUR_VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
"""Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB."""


@pytest.mark.parametrize("vision", COLOUR_VISION)
def test_colours_of_series_differ_for_every_kind_of_colour_vision(vision: str) -> None:
    linear = [np.array([part**2.2 for part in to_rgb(colour)]) for colour in PALETTE]
    seen = [lab(np.clip(np.array(COLOUR_VISION[vision]) @ each, 1e-6, 1)) for each in linear]
    distances = [float(np.linalg.norm(one - other)) for one, other in combinations(seen, 2)]
    assert min(distances) > 10  # just noticeable is 2.3


def test_text_can_be_read_on_every_background() -> None:
    shades = [level / 10 for level in range(11)]
    backgrounds = [(red, green, blue) for red, green, blue in product(shades, repeat=3)]
    named = {"white": (1.0, 1.0, 1.0), "black": (0.0, 0.0, 0.0)}
    assert min(contrast(named[text_on(each)], each) for each in backgrounds) >= 4.5
    assert text_on((1, 1, 1)) == "black"
    assert text_on((0, 0.1, 0.2)) == "white"
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)


def test_annotation_is_above_its_point() -> None:
    _, (panel,) = make_figure(1, width=3, height=2, title="")
    annotate(panel, "0.5", (1.0, 2.0))
    (text,) = panel.texts
    assert (text.get_text(), text.xy, text.xyann) == ("0.5", (1.0, 2.0), (0, 8))  # type: ignore[attr-defined]


def draw_text(path: Path) -> str:
    figure, (panel,) = make_figure(1, width=3, height=2, title="scores & more")
    panel.plot([1, 2], **series_style(0))
    save(figure, path)
    return path.read_text(encoding="utf-8")


def test_a_picture_is_an_svg_that_is_the_same_for_the_same_data(tmp_path: Path) -> None:
    drawn = draw_text(tmp_path / "a.svg")
    assert drawn == draw_text(tmp_path / "b.svg")
    assert ElementTree.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"
    assert "scores &amp; more" in drawn


def test_every_colour_of_a_picture_has_one_for_dark_pages(tmp_path: Path) -> None:
    rules, _, elements = draw_text(tmp_path / "a.svg").partition("</style>")
    colours = set(re.findall(r"(fill|stroke): (#\w{6})", elements))
    dark = dict(re.findall(r"\[style\*=\"((?:fill|stroke): #\w{6})\"\] \{ \w+: (#\w{6}) !important \}", rules))
    assert {("fill", "#ffffff"), ("stroke", PALETTE[0])} <= colours
    assert colours - {tuple(each.split(": ")) for each in dark} == set()
    background = to_rgb(dark["fill: #ffffff"])
    seen = [to_rgb(dark[f"{part}: {colour}"]) for part, colour in colours if colour not in ("#ffffff", style.GRID)]
    assert min(contrast(colour, background) for colour in seen) >= 4.5


def test_a_failed_plot_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure, _ = make_figure(1, width=3, height=2, title="")
    save(figure, tmp_path / "plots" / "a.svg")
    before = (tmp_path / "plots" / "a.svg").read_bytes()
    monkeypatch.setattr(figure, "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save(figure, tmp_path / "plots" / "a.svg")
    assert [path.name for path in (tmp_path / "plots").iterdir()] == ["a.svg"]
    assert (tmp_path / "plots" / "a.svg").read_bytes() == before


def test_letters_without_a_font_do_not_warn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "_installed_fonts", lambda: ["DejaVu Sans"])
    figure, _ = make_figure(1, width=3, height=2, title="긍정")
    save(figure, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").exists()
