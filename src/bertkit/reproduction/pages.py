"""Reproduced tables of the paper: our figures beside the paper's in Markdown, as a picture and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.config.records import from_plain
from bertkit.errors import BertkitError, data_error
from bertkit.report.style import (
    BASELINE_DASHES,
    FAINT,
    INK,
    PALE,
    PALETTE,
    add_legend,
    add_shared_legend,
    make_figure,
    save,
    series_style,
    set_panel_title,
    show_literally,
)
from bertkit.reproduction.answers import tabulate_answers
from bertkit.reproduction.cost_picture import draw_costs
from bertkit.reproduction.result_tables import Cell, ResultTable
from bertkit.storage.atomic import read_json, write_json, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_APART = 0.12
"""Rows between our dot and the paper's square of a system, which would cover each other."""

_TICKS = 4
"""The most numbers on a horizontal axis: panels are narrow."""

_BESIDE = 0.008
"""Share of the axis between the points of two curves at the same step."""


_HOW_ANSWERED = """A claim holds if a difference is certainly above 0 for some task and certainly below 0 for none. It
does not hold if one is certainly below 0 for some task and above 0 for none. Certain is a difference beyond an interval
that is wide enough for all tasks of the claim together: the error of 5 % is divided by their number. The intervals
shown are 95 % intervals, each for itself. An interval covers two kinds of chance: the seeds
of fine-tuning (Student's interval of the differences seed by seed) and the dev examples (a paired bootstrap); its half
width is the root of the sum of both squared. It does not cover the seed of pre-training: each network was pre-trained
once.
"""

_SCORE_AGAINST_COST = """## Score against cost

![Score against cost](costs.svg)

Horizontal: the floating-point operations of pre-training, on a logarithmic axis. Vertical: the score in per cent; ours
is the mean with the standard deviation of the seeds. The paper does not report its operations: they are computed from
its settings, for rows without padding, and for the networks that its authors pre-trained. Where it has several figures
for a network and a task, that of the last table is drawn: Table 1 has scores on test, later tables on dev. A dotted
line connects the points of one pre-training. Systems without pre-training have no place on the axis.
"""


def write_tables(tables: Sequence[ResultTable], folder: Path, introduction: str, names: Sequence[str]) -> Path:
    """Write ``NAME.json``, ``NAME.svg`` and ``NAME.md`` of every table, and ``reproduction.md``, which is returned.

    The latter shows every table that ``folder`` has by now, from earlier commands too, in the order of ``names``,
    between the answers of all of them and a picture of their scores against their costs.
    """
    for table in tables:
        write_json(folder / f"{table.name}.json", asdict(table))
        if _has_picture(table):
            plot_table(table, folder / f"{table.name}.svg")
        write_text(folder / f"{table.name}.md", _section(table))
    page = folder / "reproduction.md"
    found = read_tables(folder, names)
    costs = [_SCORE_AGAINST_COST] if draw_costs(found, folder / "costs.svg") else []
    write_text(page, "\n".join([introduction, *_list_answers(found), *map(_section, found), *costs]))
    return page


def read_tables(folder: Path, names: Sequence[str]) -> list[ResultTable]:
    """The tables that ``write_tables`` wrote into ``folder``, in the order of ``names``."""
    return [_read_table(file, name) for name in names if (file := folder / f"{name}.json").exists()]


def _read_table(file: Path, name: str) -> ResultTable:
    try:
        return from_plain(ResultTable, read_json(file), source=str(file))
    except BertkitError as error:
        raise data_error(f"{error} Make it again: bertkit reproduce {name} -o {file.parent}") from error


def _has_picture(table: ResultTable) -> bool:
    return any(cell.ours for row in table.rows if not row.is_baseline for cell in row.cells)


def _section(table: ResultTable) -> str:
    """The table and its picture, if it has one, in Markdown."""
    return table.markdown() + (f"\n![{table.heading}]({table.name}.svg)\n" if _has_picture(table) else "")


def _list_answers(tables: Sequence[ResultTable]) -> list[str]:
    """The answers of all tables as a section; nothing if there are none."""
    answers = [answer for table in tables for answer in table.answers]
    if not answers:
        return []
    return [f"## Which conclusions of the paper hold here\n\n{tabulate_answers(answers)}\n{_HOW_ANSWERED}\n"]


def plot_table(table: ResultTable, output: Path) -> None:
    """Our means as dots with error bars, the paper's figures as squares: one panel per column, or curves over steps.

    Columns without a score of ours have no panel, and rows without a score in these columns no place. Trivial methods,
    which the paper does not have, are lines across the panels.
    """
    if table.curves:
        _plot_curves(table, output)
        return
    networks = [row for row in table.rows if not row.is_baseline]
    columns = [place for place, _ in enumerate(table.columns) if any(row.cells[place].ours for row in networks)]
    rows = [row for row in networks if any(row.cells[place].has_score for place in columns)]
    baselines = [row for row in table.rows if row.is_baseline and any(row.cells[place].ours for place in columns)]
    width, height = 3.2 + 1.7 * len(columns), 2.6 + 0.34 * len(rows)
    figure, panels = make_figure(len(columns), width=width, height=height, title=table.heading)
    for panel, place in zip(panels, columns, strict=True):
        _draw_column(panel, [row.cells[place] for row in rows])
        for row, dashes in zip(baselines, BASELINE_DASHES, strict=False):
            if summary := row.cells[place].summary:
                panel.axvline(summary.mean, color=INK, linewidth=1.2, linestyle=(0, dashes), zorder=1)
        set_panel_title(panel, table.columns[place])
        panel.set_yticks(range(len(rows)), [row.name for row in rows] if panel is panels[0] else [])
        show_literally(*panel.get_yticklabels())
    for row, dashes in zip(baselines, BASELINE_DASHES, strict=False):  # the first panel may lack a line of the others
        panels[0].plot([], [], color=INK, linewidth=1.2, linestyle=(0, dashes), label=row.name)
    add_shared_legend(panels[0], ncols=2)
    save(figure, output)


def _draw_column(panel: Axes, cells: Sequence[Cell]) -> None:
    places = range(len(cells))
    ours = [(each.summary, place) for each, place in zip(cells, places, strict=True)]
    found = [(summary.mean, summary.sd or 0.0, place) for summary, place in ours if summary is not None]
    if found:
        means, sds, at = zip(*found, strict=True)
        above = [place - _APART for place in at]
        panel.errorbar(means, above, xerr=sds, fmt="o", color=PALETTE[0], markersize=6, linewidth=1.5, label="ours")
    paper = [(each.paper, place) for each, place in zip(cells, places, strict=True) if each.paper is not None]
    if paper:
        figures, at = zip(*paper, strict=True)
        below = [place + _APART for place in at]
        panel.plot(figures, below, "s", color=INK, mfc="white", mew=1.2, markersize=5.5, label="paper")
    panel.set_ylim(len(cells) - 0.5, -0.5)
    panel.grid(axis="x", color=PALE, linewidth=0.5)
    panel.margins(x=0.15)
    panel.locator_params(axis="x", nbins=_TICKS)


def _plot_curves(table: ResultTable, output: Path) -> None:
    figure, (panel,) = make_figure(1, width=6.4, height=4.2, title=table.heading)
    for place, curve in enumerate(table.curves):
        points = [
            (row.step, summary.mean, summary.sd or 0.0)
            for row in table.rows
            if row.name.startswith(curve) and row.step is not None and (summary := row.cells[0].summary) is not None
        ]
        if points:
            steps, means, sds = zip(*points, strict=True)
            beside = [step + place * _BESIDE * (max(steps) - min(steps)) for step in steps]
            panel.errorbar(beside, means, sds, **series_style(place), linewidth=2, capsize=3, label=curve)
    flat = [(row.name, summary.mean) for row in table.rows if row.step is None and (summary := row.cells[0].summary)]
    for (name, score), dashes in zip(flat, BASELINE_DASHES, strict=False):
        panel.axhline(score, color=INK, linewidth=1.2, linestyle=(0, dashes), label=name)
    set_panel_title(panel, table.columns[0])
    panel.set_xlabel("steps of pre-training", color=FAINT, fontsize=9)
    add_legend(panel, ncols=2)
    save(figure, output)
