"""Plots of runs: training curves, epochs of fine-tuning, confusion matrices, sweeps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bertkit.metrics.classification import confusion
from bertkit.optional import load
from bertkit.report.style import (
    BASELINE_DASHES,
    FAINT,
    GRID,
    INK,
    PALE,
    PALETTE,
    add_legend,
    annotate,
    make_figure,
    mark_change,
    save,
    series_style,
    set_panel_title,
    show_literally,
    text_on,
)
from bertkit.scores import format_score, kind_of, rank_score, summarize_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MetricsRecord = Mapping[str, Any]
"""A line of ``metrics.jsonl``."""

_OBJECTIVE_NAMES = {
    "mlm": "masked words",
    "clm": "next tokens",
    "nsp": "next sentence",
    "passages": "adjacent passages",
    "bilm": "next and previous words",
}
"""The objectives of pre-training, whose losses are drawn."""

_SMOOTHING = 0.015
"""The loss is averaged over this share of the curve on either side."""

_MOST_CELLS_WITH_NUMBERS = 20
_MOST_CELLS_WITH_SHARES = 8
_MOST_NAMED_CLASSES = 60
_LONGEST_NAME = 24
_MOST_ROWS = 40
_LETTERS_ON_A_LINE = 40


def plot_training(records: Iterable[MetricsRecord], output: Path) -> None:
    """Training and held-out loss of every objective over the steps, and the held-out accuracies.

    ``records`` are the lines of a ``metrics.jsonl``: ``loss/TERM`` where ``kind`` is ``train``, with ``seq_length``;
    ``TERM`` and ``TERM_accuracy`` where it is ``heldout``, with ``TERM_base_rate`` if there is one. A line marks where
    the length of the rows changes. The title has the name of the folder of ``output``.
    """
    records = list(records)
    train = [record for record in records if record["kind"] == "train"]
    heldout = [record for record in records if record["kind"] == "heldout"]
    terms = [key.removeprefix("loss/") for key in (train[0] if train else {}) if key.startswith("loss/")]
    has_accuracy = any(f"{term}_accuracy" in record for record in heldout for term in terms)
    columns = max(1, len(terms)) + has_accuracy
    title = f"Pre-training: {output.resolve().parent.name}"
    figure, panels = make_figure(columns, width=1.2 + 4.2 * columns, height=4.8, title=title)
    for place, (panel, term) in enumerate(zip(panels, terms, strict=False)):
        _draw_loss(panel, train, heldout, term, place)
    if has_accuracy:
        _draw_accuracies(panels[-1], heldout, terms)
    last = max([record["step"] for record in records], default=1)
    ticker = load("matplotlib.ticker")
    for panel in panels:
        panel.set_xlim(-0.02 * last, 1.04 * last)
        panel.set_xlabel("step", color=FAINT, fontsize=9)
        panel.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
        panel.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
        for step, length in _length_changes(train):
            mark_change(panel, step, f"rows of {length}")
    save(figure, output)


def _length_changes(train: Sequence[MetricsRecord]) -> Iterator[tuple[int, int]]:
    """The steps from which the rows have another length, with that length."""
    for before, after in itertools.pairwise(train):
        if after.get("seq_length") != before.get("seq_length"):
            yield after["step"], after["seq_length"]


def _draw_loss(
    panel: Axes, train: Sequence[MetricsRecord], heldout: Sequence[MetricsRecord], term: str, place: int
) -> None:
    steps, colour = [record["step"] for record in train], PALETTE[place % len(PALETTE)]
    losses = [float(record[f"loss/{term}"]) for record in train]
    panel.plot(steps, losses, color=colour, alpha=0.22, linewidth=1)
    panel.plot(steps, _smooth(losses), color=colour, linewidth=2, label="training")
    measured = [(record["step"], float(record[term])) for record in heldout if term in record]
    if measured:
        panel.plot(*zip(*measured, strict=True), "o--", color=INK, mfc="white", mew=1.5, lw=1, ms=5, label="held out")
        annotate(panel, f"{measured[-1][1]:.3f}", measured[-1], ha="right")
    set_panel_title(panel, f"loss, {_OBJECTIVE_NAMES.get(term, term)}")
    add_legend(panel, ncols=2)


def _draw_accuracies(panel: Axes, heldout: Sequence[MetricsRecord], terms: Sequence[str]) -> None:
    """The accuracies, and what one and the same answer would get, which depends on the length of the rows."""
    for place, term in enumerate(terms):
        name = _OBJECTIVE_NAMES.get(term, term)
        measured = _measurements(heldout, f"{term}_accuracy")
        if measured:
            panel.plot(*zip(*measured, strict=True), **series_style(place), lw=2, ms=5, mec="white", label=name)
            annotate(panel, f"{measured[-1][1]:.1%}", measured[-1], ha="right")
        base_rates = _measurements(heldout, f"{term}_base_rate")
        if base_rates:
            colour = PALETTE[place % len(PALETTE)]
            label = f"{name}, always one answer: {base_rates[-1][1]:.1%}"
            panel.plot(*zip(*base_rates, strict=True), color=colour, ls=":", lw=1.5, label=label)
    set_panel_title(panel, "accuracy, held out")
    panel.yaxis.set_major_formatter(load("matplotlib.ticker").PercentFormatter(1, decimals=0))
    panel.margins(y=0.15)
    add_legend(panel)


def _measurements(records: Sequence[MetricsRecord], key: str) -> list[tuple[int, float]]:
    return [(record["step"], float(record[key])) for record in records if key in record]


def _smooth(values: Sequence[float]) -> list[float]:
    """A moving average. Near the start its window is narrower, so that the steep beginning does not distort it.

    Losses that are not finite, those of skipped steps, are left out; without any other the average is NaN.
    """
    widest = int(_SMOOTHING * len(values))
    known = np.isfinite(values)
    sums = np.cumsum([0.0, *np.where(known, values, 0.0)])
    counts = np.cumsum([0, *known])
    smoothed = []
    for place in range(len(values)):
        reach = min(widest, place)
        stop = min(place + reach + 1, len(values))
        count = int(counts[stop] - counts[place - reach])
        smoothed.append(float(sums[stop] - sums[place - reach]) / count if count else math.nan)
    return smoothed


def plot_epochs(
    seeds: Mapping[int, Sequence[Mapping[str, float]]],
    metric: str,
    output: Path,
    to_beat: Mapping[str, float] | None = None,
) -> None:
    """The dev score after every epoch, one line per seed; the marker of the epoch that was kept is filled.

    ``to_beat`` are scores of methods without epochs, by name: lines across the panel. After a single epoch there is one
    row per seed instead. The title has the name of the folder of ``output``.
    """
    best = [summarize_scores(metric, [scores[metric] for scores in epochs]).best for epochs in seeds.values()]
    summary = summarize_scores(metric, best)
    title = f"{_title_of(metric)} on dev: {output.resolve().parent.name}"
    most = max(len(epochs) for epochs in seeds.values())
    names = 0.22 * (len(to_beat or {}) + (len(seeds) + 1) // 2)  # inches of the legend
    height = 4.2 if most > 1 else 1.8 + 0.3 * len(seeds)
    figure, (panel,) = make_figure(1, width=6.4, height=height + names, title=title)
    if most == 1:
        _draw_single_epoch(panel, dict(zip(seeds, best, strict=True)))
    else:
        _draw_epochs(panel, seeds, metric, most)
    across = panel.axvline if most == 1 else panel.axhline
    if summary.sd is not None:
        band = panel.axvspan if most == 1 else panel.axhspan
        band(summary.mean - summary.sd, summary.mean + summary.sd, color=GRID, alpha=0.6, zorder=0)
        across(
            summary.mean,
            color=FAINT,
            linewidth=1,
            linestyle=(0, (4, 3)),
            zorder=1,
            label=f"mean: {format_score(summary.mean)}",
        )
    for (name, score), dashes in zip((to_beat or {}).items(), BASELINE_DASHES, strict=False):
        label = f"{name}: {format_score(score)}"
        across(score, color=INK, linewidth=1.2, linestyle=(0, dashes), zorder=1, label=label)
    set_panel_title(panel, f"best epochs: {summary}" if summary.sd is not None else f"best epoch: {summary}")
    add_legend(panel, ncols=2)
    save(figure, output)


def _draw_epochs(panel: Axes, seeds: Mapping[int, Sequence[Mapping[str, float]]], metric: str, most: int) -> None:
    for place, (seed, epochs) in enumerate(seeds.items()):
        style = series_style(place)
        values = [scores[metric] for scores in epochs]
        kept = max(range(len(values)), key=lambda epoch: (rank_score(metric, values[epoch]), epoch))
        panel.plot(
            range(1, len(values) + 1), values, **style, markerfacecolor="white", markeredgewidth=1.5, linewidth=2
        )
        name = f"seed {seed}: {format_score(values[kept])}"
        panel.plot(kept + 1, values[kept], **style, markersize=9, label=name)
    panel.set_xlabel("epoch", color=FAINT, fontsize=9)
    panel.set_xlim(0.75, most + 0.25)
    panel.set_xticks(range(1, most + 1, 1 + most // 12))
    panel.margins(y=0.15)


def _draw_single_epoch(panel: Axes, scores: Mapping[int, float]) -> None:
    """A row with a dot for each seed: one epoch is no curve."""
    panel.grid(visible=False, axis="y")
    panel.grid(axis="x", color=GRID, linewidth=1)
    for row, score in enumerate(scores.values()):
        panel.plot(score, row, "o", color=PALETTE[0], markersize=9, markeredgecolor="white")
        annotate(panel, format_score(score), (score, row))
    panel.set_yticks(range(len(scores)), [f"seed {seed}" for seed in scores])
    panel.set_ylim(len(scores) - 0.4, -0.8)
    panel.set_xlabel("score after the only epoch", color=FAINT, fontsize=9)
    panel.use_sticky_edges = False
    panel.margins(x=0.15)


def plot_confusion(gold: Sequence[str], predicted: Sequence[str], classes: Sequence[str], output: Path) -> None:
    """The confusion matrix, gold classes in rows, shaded by the share of the row."""
    counts = np.array(confusion(gold, predicted, classes=classes))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    side = min(3.4 + 0.55 * len(classes), 14.0)
    right = int(np.trace(counts)) / len(gold)
    figure, (panel,) = make_figure(
        1, width=side + 1, height=side + 0.5, title=f"Confusion on dev: {output.resolve().parent.name}"
    )
    set_panel_title(panel, f"{right:.1%} of {len(gold):,} right")
    shade = load("matplotlib.colors").LinearSegmentedColormap.from_list(
        "shade", ["#ffffff", "#8fc1e0", PALETTE[0], "#003a5c"]
    )
    panel.imshow(shares, cmap=shade, vmin=0, vmax=1)
    panel.grid(visible=False)
    panel.spines[:].set(visible=True, color=GRID)
    panel.set_xlabel("predicted", color=FAINT, fontsize=10)
    panel.set_ylabel("gold", color=FAINT, fontsize=10)
    _name_classes(panel, classes)
    if len(classes) <= _MOST_CELLS_WITH_NUMBERS:
        for row, column in np.ndindex(*counts.shape):
            count, share = counts[row, column], shares[row, column]
            text = f"{count:,}\n{share:.0%}" if len(classes) <= _MOST_CELLS_WITH_SHARES else f"{count:,}"
            colour = text_on(shade(float(share))[:3]) if count else FAINT
            panel.text(column, row, text, ha="center", va="center", fontsize=9, color=colour)
    save(figure, output)


def _name_classes(panel: Axes, classes: Sequence[str]) -> None:
    if len(classes) > _MOST_NAMED_CLASSES:
        panel.set_xticks([])
        panel.set_yticks([])
        return
    names = [name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…" for name in classes]
    places = range(len(names))
    if sum(map(len, names)) > _LETTERS_ON_A_LINE:
        panel.set_xticks(places, names, rotation=35, ha="right")
    else:
        panel.set_xticks(places, names)
    panel.set_yticks(places, names)
    show_literally(*panel.get_xticklabels(), *panel.get_yticklabels())


def plot_sweep(points: Sequence[tuple[str, Sequence[float]]], metric: str, output: Path) -> None:
    """The dev scores of a sweep: one row per configuration, the best on top, seeds as dots, their mean as a line."""
    shown = points[:_MOST_ROWS]
    height = max(2.4, 1.6 + 0.28 * len(shown))
    title = f"{_title_of(metric)} on dev: {output.resolve().parent.name}"
    figure, (panel,) = make_figure(1, width=7.6, height=height, title=title)
    panel.grid(visible=False, axis="y")
    panel.grid(axis="x", color=GRID, linewidth=1)
    for row, (_, scores) in enumerate(shown):
        summary, colour = summarize_scores(metric, scores), PALETTE[0] if row == 0 else PALE
        if summary.sd is not None:
            panel.barh(row, 2 * summary.sd, 0.62, left=summary.mean - summary.sd, color=colour, alpha=0.3)
        panel.plot([summary.mean] * 2, [row - 0.36, row + 0.36], color=PALETTE[0] if row == 0 else FAINT, linewidth=2)
        panel.plot(scores, [row] * len(scores), "o", color=colour, markersize=6, markeredgecolor="white")
    best = summarize_scores(metric, shown[0][1])
    left_out = "" if len(points) == len(shown) else f"; {len(points) - len(shown)} more are not shown"
    set_panel_title(panel, f"best point: {best}{left_out}")
    panel.set_yticks(range(len(shown)), [name for name, _ in shown])
    panel.tick_params(axis="y", colors=INK)
    show_literally(*panel.get_yticklabels())
    panel.use_sticky_edges = False
    panel.margins(x=0.04)
    panel.set_ylim(len(shown) - 0.4, -0.6)
    save(figure, output)


def _title_of(metric: str) -> str:
    title = kind_of(metric).title
    return title[:1].upper() + title[1:]
