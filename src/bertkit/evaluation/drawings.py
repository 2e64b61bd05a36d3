"""SVG charts for the HTML report; they take their colours from the page, so they fit a light and a dark theme."""

from __future__ import annotations

from collections.abc import Sequence

from bertkit.escaping import to_html
from bertkit.metrics.calibration import Bin
from bertkit.scores import format_score, is_defined

_LEFT, _TOP, _SIDE = 44, 12, 260
_ROW, _BAR, _NAMES = 26, 300, 110
_LETTER = 7.5
"""Room for a letter of 12 px: names in DejaVu Sans, the widest of the usual fonts, have 7.1 px per letter."""


def draw_calibration(bins: Sequence[Bin]) -> str:
    """A reliability diagram: a dot for each bin, larger with more predictions; the dashed diagonal is perfect."""
    largest = max(each.count for each in bins)
    parts = [f'<line class="faint dashed" {_from_to(_point(0, 0), _point(1, 1))}/>']
    for step in (0, 0.25, 0.5, 0.75, 1):
        (across, bottom), (left, up) = _point(step, 0), _point(0, step)
        parts.append(f'<line class="grid" {_from_to(_point(0, step), _point(1, step))}/>')
        parts.append(f'<text x="{across:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{step:.0%}</text>')
        parts.append(f'<text x="{left - 6:.1f}" y="{up + 4:.1f}" text-anchor="end">{step:.0%}</text>')
    points = [_point(each.confidence, each.accuracy) for each in bins]
    parts.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>')
    for each, (x, y) in zip(bins, points, strict=True):
        radius = 3 + 5 * (each.count / largest) ** 0.5
        label = f"{each.count:,} predictions, confidence {each.confidence:.1%}, accuracy {each.accuracy:.1%}"
        parts.append(f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{label}</title></circle>')
    middle, bottom = _point(0.5, 0)
    parts.append(f'<text x="{middle:.1f}" y="{bottom + 34:.1f}" text-anchor="middle">predicted probability</text>')
    title = "Accuracy by predicted probability; the same numbers are in the table below."
    return _wrap(parts, _LEFT + _SIDE + 16, _TOP + _SIDE + 44, title)


def draw_intervals(rows: Sequence[tuple[str, float, float, float]], title: str, *, widest: float = 1.0) -> str:
    """Values with their intervals, given as (name, value, low, high), one below the other on a common scale.

    The scale has at least 0 to ``widest``. A value that is undefined has a row without a mark.
    """
    ends = [0.0, widest, *(end for row in rows for end in row[1:] if is_defined(end))]
    lowest, highest = min(ends), max(ends)
    extent = highest - lowest or 1.0
    left = max(_NAMES, _LETTER * max(len(row[0]) for row in rows) + 8)
    figures = [_figures(*row[1:]) for row in rows]
    width = left + _BAR + 10 + _LETTER * max(map(len, figures))

    def x_of(value: float) -> float:
        return left + _BAR * (value - lowest) / extent

    parts = []
    for number, (name, value, low, high) in enumerate(rows):
        y = _TOP + _ROW * number + _ROW / 2
        parts += [
            f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{to_html(name)}</text>',
            f'<line class="grid" x1="{left:.1f}" y1="{y:.1f}" x2="{left + _BAR:.1f}" y2="{y:.1f}"/>',
        ]
        if is_defined(value) and is_defined(low):
            parts += [
                f'<line class="range" x1="{x_of(low):.1f}" y1="{y:.1f}" x2="{x_of(high):.1f}" y2="{y:.1f}"/>',
                f'<circle class="mark" cx="{x_of(value):.1f}" cy="{y:.1f}" r="5"/>',
            ]
        parts.append(f'<text x="{left + _BAR + 10:.1f}" y="{y + 4:.1f}">{figures[number]}</text>')
    return _wrap(parts, width, 2 * _TOP + _ROW * len(rows), title)


def _figures(value: float, low: float, high: float) -> str:
    shown = format_score(value)
    return f"{shown} ({format_score(low)} to {format_score(high)})" if is_defined(value) and is_defined(low) else shown


def _point(x: float, y: float) -> tuple[float, float]:
    return _LEFT + _SIDE * x, _TOP + _SIDE * (1 - y)


def _from_to(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'


def _wrap(parts: Sequence[str], width: float, height: float, title: str) -> str:
    label = to_html(title)
    head = f'<svg role="img" aria-label="{label}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">'
    return f"{head}<title>{label}</title>{''.join(parts)}</svg>"
