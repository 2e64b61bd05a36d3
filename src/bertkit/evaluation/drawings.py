"""Drawings inside an HTML page: SVG that takes its colours from the page, so that they suit a light and a dark one."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bertkit.metrics.calibration import Bin

_LEFT, _TOP, _SIDE = 44, 12, 260
_ROW, _BAR, _NAMES, _FIGURES = 26, 300, 110, 170


def draw_calibration(bins: Sequence[Bin]) -> str:
    """Accuracy by confidence, a dot for each bin, larger with more answers; the diagonal is what is promised."""
    most = max(each.count for each in bins)
    parts = [f'<line class="faint dashed" {_from_to(_spot(0, 0), _spot(1, 1))}/>']
    for step in (0, 0.25, 0.5, 0.75, 1):
        (across, bottom), (left, up) = _spot(step, 0), _spot(0, step)
        parts.append(f'<line class="grid" {_from_to(_spot(0, step), _spot(1, step))}/>')
        parts.append(f'<text x="{across:.1f}" y="{bottom + 16:.1f}" text-anchor="middle">{step:.0%}</text>')
        parts.append(f'<text x="{left - 6:.1f}" y="{up + 4:.1f}" text-anchor="end">{step:.0%}</text>')
    spots = [_spot(each.confidence, each.accuracy) for each in bins]
    parts.append(f'<polyline class="line" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in spots)}"/>')
    for each, (x, y) in zip(bins, spots, strict=True):
        radius = 3 + 5 * (each.count / most) ** 0.5
        said = f"{each.count:,} answers, {each.confidence:.1%} sure, {each.accuracy:.1%} right"
        parts.append(f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{said}</title></circle>')
    middle, bottom = _spot(0.5, 0)
    parts.append(f'<text x="{middle:.1f}" y="{bottom + 34:.1f}" text-anchor="middle">probability of the answer</text>')
    title = "Share of right answers by the probability of the answer; the same figures are in the table below."
    return _wrap(parts, _LEFT + _SIDE + 16, _TOP + _SIDE + 44, title)


def draw_intervals(rows: Sequence[tuple[str, float, float, float]], title: str) -> str:
    """(name, value, low, high), one below the other on one scale that holds all of them."""
    lowest, highest = min(0.0, *(row[2] for row in rows)), max(1.0, *(row[3] for row in rows))

    def place(value: float) -> float:
        return _NAMES + _BAR * (value - lowest) / (highest - lowest)

    parts = []
    for number, (name, value, low, high) in enumerate(rows):
        y = _TOP + _ROW * number + _ROW / 2
        parts += [
            f'<text x="{_NAMES - 8}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>',
            f'<line class="grid" x1="{_NAMES}" y1="{y:.1f}" x2="{_NAMES + _BAR}" y2="{y:.1f}"/>',
            f'<line class="range" x1="{place(low):.1f}" y1="{y:.1f}" x2="{place(high):.1f}" y2="{y:.1f}"/>',
            f'<circle class="mark" cx="{place(value):.1f}" cy="{y:.1f}" r="5"/>',
            f'<text x="{_NAMES + _BAR + 10}" y="{y + 4:.1f}">{value:.4f} ({low:.4f} to {high:.4f})</text>',
        ]
    return _wrap(parts, _NAMES + _BAR + _FIGURES, 2 * _TOP + _ROW * len(rows), title)


def _spot(x: float, y: float) -> tuple[float, float]:
    return _LEFT + _SIDE * x, _TOP + _SIDE * (1 - y)


def _from_to(start: tuple[float, float], end: tuple[float, float]) -> str:
    return f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'


def _wrap(parts: Sequence[str], width: float, height: float, title: str) -> str:
    label = escape(title)
    head = f'<svg role="img" aria-label="{label}" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">'
    return f"{head}<title>{label}</title>{''.join(parts)}</svg>"
