"""The style of plots: palette, grid and output files. The global state of matplotlib is not changed."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from bertkit.storage.atomic import write_file

Location = Literal["best", "upper right", "lower left", "lower right"]

PALETTE = ("#24618f", "#d9673e", "#5b9a78", "#8a5a9e", "#c79a2b", "#4a4f69")
INK = "#23262e"
FAINT = "#6b7280"
PALE = "#b8bdc7"
GRID = "#e6e8ec"

_DOTS_PER_INCH = 150
_FONTS = ("DejaVu Sans", "Noto Sans CJK KR", "Noto Sans CJK JP", "NanumGothic", "Malgun Gothic", "AppleGothic")
"""The first has Latin, Greek and Cyrillic letters; the others, where they are installed, Asian ones."""


def make_figure(columns: int, *, width: float, height: float, title: str) -> tuple[Figure, list[Axes]]:
    """An empty figure of ``width`` x ``height`` inches with ``columns`` panels side by side."""
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12, wspace=0.06)
    figure = Figure(figsize=(width, height), layout=layout, facecolor="white")
    show_literally(figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", color=INK))
    panels = list(figure.subplots(1, columns, squeeze=False)[0])
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


def add_legend(
    panel: Axes, *, loc: Location = "best", anchor: tuple[float, float] | None = None, ncols: int = 1
) -> None:
    """A legend without a frame that covers the grid. ``loc``, ``anchor`` and ``ncols`` are those of matplotlib."""
    legend = panel.legend(
        loc=loc,
        bbox_to_anchor=anchor,
        ncols=ncols,
        fontsize=9,
        labelcolor=FAINT,
        facecolor="white",
        edgecolor="none",
        framealpha=0.9,
    )
    show_literally(*legend.get_texts())


def annotate(panel: Axes, text: str, at: tuple[float, float], *, colour: str = INK, ha: str = "center") -> None:
    """Write a number just above the point ``at``."""
    panel.annotate(text, at, xytext=(0, 7), textcoords="offset points", ha=ha, fontsize=9, color=colour)


def show_literally(*texts: Text) -> None:
    """Show text as it is: a dollar sign starts no formula, and Asian letters get a font that has them."""
    for text in texts:
        text.set_parse_math(False)
        text.set_fontfamily(_installed_fonts())


@cache
def _installed_fonts() -> list[str]:
    known = set(get_font_names())
    return [font for font in _FONTS if font in known]


def save(figure: Figure, path: Path) -> None:
    """Write a PNG atomically. A letter that no installed font has is shown as a box."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        write_file(path, lambda temporary: figure.savefig(temporary, dpi=_DOTS_PER_INCH, format="png"))
