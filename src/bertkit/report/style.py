"""The style of plots: palette, grid and output files. The global state of matplotlib is not changed."""

from __future__ import annotations

import warnings
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from bertkit.optional import load
from bertkit.storage.atomic import write_text

if TYPE_CHECKING:  # matplotlib takes 0.4 s to import, and only what draws a plot needs it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
"""Okabe and Ito, "Color Universal Design" (2008): they differ for every kind of colour vision."""

_MARKERS = ("o", "s", "^", "D", "v", "P")
_DASHES: tuple[tuple[float, ...], ...] = ((), (6, 2), (2, 1.5), (8, 2, 2, 2), (4, 1, 1, 1, 1, 1), (1, 1))
BASELINE_DASHES: tuple[tuple[float, ...], ...] = ((1, 2), (6, 2, 1, 2), (8, 3))
"""Lines of scores to beat are of one colour, and differ by their dashes."""

INK = "#23262e"
FAINT = "#6b7280"
PALE = "#b8bdc7"
GRID = "#e6e8ec"

_WHITE = "#ffffff"
_DARK = {
    _WHITE: "#14171b",
    INK: "#e8ebef",
    FAINT: "#a4aeb9",
    PALE: "#5b6470",
    GRID: "#2c323a",
    PALETTE[0]: "#4aa3df",
}
"""The colours of a picture where a reader prefers dark pages; the others of the palette are light enough."""

_LEGEND: dict[str, Any] = {"fontsize": 9, "labelcolor": INK, "edgecolor": "none", "handlelength": 3.5}
_LEGEND_BELOW = 36
"""Points from the bottom axis to the legend: the numbers of the axis and its name are between them."""
_FONTS = ("DejaVu Sans", "Noto Sans CJK KR", "Noto Sans CJK JP", "NanumGothic", "Malgun Gothic", "AppleGothic")
"""The first has Latin, Greek and Cyrillic letters; the others, where they are installed, Asian ones."""


def make_figure(columns: int, *, rows: int = 1, width: float, height: float, title: str) -> tuple[Figure, list[Axes]]:
    """An empty figure of ``width`` x ``height`` inches with ``columns`` panels side by side in each of ``rows``."""
    layout = load("matplotlib.layout_engine").ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12, wspace=0.06)
    figure: Figure = load("matplotlib.figure").Figure(figsize=(width, height), layout=layout, facecolor="white")
    show_literally(figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK))
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for panel in panels:
        _style_panel(panel)
    return figure, panels


def _style_panel(panel: Axes) -> None:
    """Only a bottom axis line, and a grid that is drawn below the data."""
    for side in ("top", "right", "left"):
        panel.spines[side].set_visible(False)
    panel.spines["bottom"].set_color(FAINT)
    panel.tick_params(colors=FAINT, labelsize=9, length=0, pad=5)
    panel.grid(axis="y", color=GRID, linewidth=1)
    panel.set_axisbelow(True)


def set_panel_title(panel: Axes, text: str) -> None:
    """Write the title of a panel above its left edge."""
    show_literally(panel.set_title(text, loc="left", fontsize=10, color=FAINT, pad=8))


class SeriesStyle(TypedDict):
    """The arguments of matplotlib by which series differ."""

    color: str
    marker: str
    linestyle: tuple[int, tuple[float, ...] | None]


def series_style(place: int) -> SeriesStyle:
    """The colour, the marker and the dashes of series ``place``: each of them alone tells the first six apart."""
    number = place % len(PALETTE)
    return {"color": PALETTE[number], "marker": _MARKERS[number], "linestyle": (0, _DASHES[number] or None)}


def add_legend(panel: Axes, *, ncols: int = 1) -> None:
    """A legend without a frame below the panel, where it covers no data; nothing if nothing has a name."""
    handles, _ = panel.get_legend_handles_labels()
    if not handles:
        return
    assert panel.figure is not None
    root = panel.get_figure(root=True)
    below = load("matplotlib.transforms").offset_copy(panel.transAxes, fig=root, y=-_LEGEND_BELOW, units="points")
    legend = panel.legend(
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=below,
        borderaxespad=0,
        ncols=ncols,
        **_LEGEND,
    )
    show_literally(*legend.get_texts())


def add_shared_legend(panel: Axes, *, ncols: int) -> None:
    """One legend below all panels of the figure, of what has a name in ``panel``."""
    handles, labels = panel.get_legend_handles_labels()
    root = panel.get_figure(root=True)
    assert root is not None
    legend = root.legend(handles, labels, loc="outside lower left", ncols=ncols, **_LEGEND)
    show_literally(*legend.get_texts())


def annotate(panel: Axes, text: str, at: tuple[float, float], *, ha: str = "center") -> None:
    """Write a number just above the point ``at``."""
    note = panel.annotate(text, at, xytext=(0, 8), textcoords="offset points", ha=ha, fontsize=9, color=INK)
    show_literally(note)


def mark_change(panel: Axes, x: float, text: str) -> None:
    """A vertical line at ``x`` with a note beside its top, where something about the data changes."""
    panel.axvline(x, color=FAINT, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    note = panel.annotate(
        text, (x, 1), xycoords=("data", "axes fraction"), xytext=(3, -3), textcoords="offset points", va="top"
    )
    note.set(fontsize=8, color=FAINT, bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85})
    show_literally(note)


def text_on(background: tuple[float, float, float]) -> str:
    """Black or white, whichever has more contrast with a colour given as red, green and blue from 0 to 1.

    It is at least 4.58, above the 4.5 that WCAG 2 asks for.
    """
    return "white" if contrast(background, (1, 1, 1)) > contrast(background, (0, 0, 0)) else "black"


def contrast(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """The contrast of two colours, from 1 to 21 (WCAG 2.2, relative luminance)."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: tuple[float, float, float]) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def show_literally(*texts: Text) -> None:
    """Show text as it is: a dollar sign starts no formula, and Asian letters get a font that has them."""
    for text in texts:
        text.set_parse_math(False)
        text.set_fontfamily(_installed_fonts())


@cache
def _installed_fonts() -> list[str]:
    known = set(load("matplotlib.font_manager").get_font_names())
    return [font for font in _FONTS if font in known]


def save(figure: Figure, path: Path) -> None:
    """Write an SVG atomically, light or dark as its reader prefers. Equal figures have equal bytes.

    Letters are drawn as outlines, so that no font is needed; one that no installed font has is shown as a box.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = StringIO()
    with load("matplotlib").rc_context({"svg.hashsalt": "bertkit"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(drawn, format="svg", metadata={"Title": figure.get_suptitle(), "Date": None})
    styled = drawn.getvalue().replace("</style>", f"{_dark_rules()}</style>", 1)
    write_text(path, styled)


def _dark_rules() -> str:
    """CSS rules that replace the colours of ``_DARK``. White is that of a background, and not of a text."""
    rules = (
        f'{"[id^=patch_] > " if light == _WHITE else ""}[style*="{part}: {light}"] {{ {part}: {dark} !important }}'
        for light, dark in _DARK.items()
        for part in ("fill", "stroke")
    )
    return f"@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}"
