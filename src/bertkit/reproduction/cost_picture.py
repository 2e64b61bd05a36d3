"""A picture of score against cost over all tables of a reproduction: floating-point operations of pre-training."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertkit.report.style import (
    BASELINE_DASHES,
    FAINT,
    GRID,
    INK,
    PALETTE,
    add_shared_legend,
    make_figure,
    save,
    set_panel_title,
)
from bertkit.reproduction.paper import PaperColumn, find_column
from bertkit.reproduction.result_tables import ResultRow, ResultTable
from bertkit.scores import Summary, kind_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = ("o", "^", "D", "v", "P", "X")
"""Filled for our figures, hollow for the paper's. With the colours of the palette they tell 36 systems apart."""

_COLUMNS = 3
"""Panels side by side, at most."""

_MOST_TICKS = 9
"""Powers of ten that have room below a panel."""

_MARGIN = 0.12
"""Powers of ten beyond the first and the last tick, for half a marker."""

_MIN_POINTS = 2
"""Points of ours that make a panel."""


@dataclass(frozen=True, kw_only=True)
class CostPanel:
    """The values of one score by floating-point operations of pre-training, for every system.

    ``baselines`` have no cost.
    """

    title: str
    score: str
    ours: dict[str, dict[float, Summary]] = field(default_factory=dict)
    paper: dict[str, dict[float, float]] = field(default_factory=dict)
    baselines: dict[str, float] = field(default_factory=dict)

    @property
    def num_points(self) -> int:
        """How many points of ours there are."""
        return sum(map(len, self.ours.values()))

    def costs(self) -> list[float]:
        """The operations of all points, ours and the paper's."""
        return [flop for systems in (self.ours, self.paper) for points in systems.values() for flop in points]


def draw_costs(tables: Sequence[ResultTable], output: Path) -> bool:
    """Draw every score of ``tables`` against the cost, if any has two points of ours; returns whether one has."""
    found = [panel for panel in collect_panels(tables) if panel.num_points >= _MIN_POINTS]
    if not found:
        return False
    known = name_systems(tables)
    names = {system: known[system] for system in known if any(system in {*each.ours, *each.paper} for each in found)}
    baselines = list(dict.fromkeys(name for panel in found for name in panel.baselines))
    columns = min(_COLUMNS, len(found))
    rows = math.ceil(len(found) / columns)
    legend_rows = math.ceil((len(names) + len(baselines) + 1) / columns)
    figure, panels = make_figure(
        columns,
        rows=rows,
        width=0.8 + 3.7 * columns,
        height=1.1 + 2.9 * rows + 0.19 * legend_rows,
        title="Score against cost of pre-training",
    )
    for panel in panels[len(found) :]:
        panel.remove()
    styles = {system: _style_system(place) for place, system in enumerate(names)}
    lines = {name: _style_line(place) for place, name in enumerate(baselines)}
    _name_styles(panels[0], {names[system]: style for system, style in styles.items()}, lines)
    limits = _find_decades(cost for each in found for cost in each.costs())
    for place, (panel, content) in enumerate(zip(panels, found, strict=False)):
        _draw_panel(panel, content, styles, lines)
        _set_axes(panel, content, limits, is_lowest=place + columns >= len(found))
    add_shared_legend(panels[0], ncols=columns)
    save(figure, output)
    return True


def name_systems(tables: Sequence[ResultTable]) -> dict[str, str]:
    """The systems of all tables, each with the name of its first row."""
    names: dict[str, str] = {}
    for table in tables:
        for row in table.rows:
            if row.cost is not None:
                names.setdefault(*_identify(table, row))
    return names


def collect_panels(tables: Sequence[ResultTable]) -> list[CostPanel]:
    """A panel for each score of a task, with the rows of all tables that have it; perplexities are left out."""
    panels: dict[tuple[str, str, str | None], CostPanel] = {}
    for table in tables:
        for place, name in enumerate(table.columns):
            column = find_column(table.name, name)
            if column is None or column.kind in ("perplexity", "test"):
                continue
            task = column.task.name if column.task else column.name
            panel = panels.setdefault((task, column.score, column.features), _make_panel(table, column))
            for row in table.rows:
                _add(panel, table, row, place)
    return list(panels.values())


def _make_panel(table: ResultTable, column: PaperColumn) -> CostPanel:
    """``dev F1`` is the name of a column of several tables."""
    is_named = column.kind == "dev" and not column.name.startswith("dev")
    title = column.name if is_named else f"{table.title}, {column.name}"
    score = (
        "mean of the scores" if column.kind == "average" else kind_of(column.score.removesuffix("_mismatched")).title
    )
    return CostPanel(title=title, score=score)


def _add(panel: CostPanel, table: ResultTable, row: ResultRow, place: int) -> None:
    """Add a cell. Of several of one system at one cost the last counts: Table 1 has the paper's scores on test."""
    cell = row.cells[place]
    if row.is_baseline and cell.summary:
        panel.baselines[row.name] = cell.summary.mean
    if row.cost is None:
        return
    system, _ = _identify(table, row)
    if row.cost.pretraining_flop and cell.summary:
        panel.ours.setdefault(system, {})[row.cost.pretraining_flop] = cell.summary
    if row.cost.paper_flop and cell.paper is not None:
        panel.paper.setdefault(system, {})[row.cost.paper_flop] = cell.paper


def _identify(table: ResultTable, row: ResultRow) -> tuple[str, str]:
    """The system of a row, and its name: that of its curve, if it is a point of one."""
    name = next((curve for curve in table.curves if row.name.startswith(curve)), row.name)
    return row.system or name, name


def _style_system(place: int) -> dict[str, Any]:
    """The next colour with every system, and another pairing of colours and markers after all colours."""
    return {
        "color": PALETTE[place % len(PALETTE)],
        "marker": _MARKERS[(place + place // len(PALETTE)) % len(_MARKERS)],
        "markersize": 7,
    }


def _style_line(place: int) -> dict[str, Any]:
    number = len(BASELINE_DASHES)
    return {"color": (INK, FAINT)[place // number % 2], "linestyle": (0, BASELINE_DASHES[place % number])}


def _name_styles(panel: Axes, systems: Mapping[str, dict[str, Any]], lines: Mapping[str, dict[str, Any]]) -> None:
    """Draw nothing, with a name for each style: the panel has some of the systems, the legend all of them."""
    for name, style in systems.items():
        panel.plot([], [], **style, linestyle="none", label=name)
    panel.plot([], [], "o", color=INK, mfc="none", markersize=6, label="hollow: the paper's figure")
    for name, style in lines.items():
        panel.plot([], [], **style, linewidth=1.2, label=name)


def _draw_panel(
    panel: Axes, content: CostPanel, styles: Mapping[str, dict[str, Any]], lines: Mapping[str, dict[str, Any]]
) -> None:
    for name, score in content.baselines.items():
        panel.axhline(score, **lines[name], linewidth=1.2, zorder=1)
    for system, style in styles.items():
        ours = sorted(content.ours.get(system, {}).items())
        if ours:
            costs = [cost for cost, _ in ours]
            means = [score.mean for _, score in ours]
            sds = [score.sd or 0.0 for _, score in ours]
            line = (0, (1, 1.5)) if len(ours) > 1 else "none"
            panel.errorbar(costs, means, sds, **style, mec="white", mew=0.4, linewidth=1.2, linestyle=line, zorder=3)
        for cost, figure in content.paper.get(system, {}).items():
            panel.plot(cost, figure, **style, mfc="none", mew=1.2, zorder=2)


def _set_axes(panel: Axes, content: CostPanel, limits: tuple[int, int], *, is_lowest: bool) -> None:
    set_panel_title(panel, content.title)
    panel.set_xscale("log")
    panel.set_xlim(10.0 ** (limits[0] - _MARGIN), 10.0 ** (limits[1] + _MARGIN))
    step = math.ceil((limits[1] - limits[0]) / _MOST_TICKS)
    panel.set_xticks([10.0**power for power in range(limits[0], limits[1] + 1, step)])
    panel.tick_params(which="minor", length=2, color=FAINT, labelbottom=False)
    panel.grid(axis="x", color=GRID, linewidth=1)
    panel.margins(y=0.12)
    panel.set_ylabel(f"{content.score} (%)", color=FAINT, fontsize=9)
    if is_lowest:
        panel.set_xlabel("pre-training cost (FLOP)", color=FAINT, fontsize=9)


def _find_decades(costs: Iterable[float]) -> tuple[int, int]:
    """The exponents of the powers of ten around all costs."""
    found = sorted(costs)
    lowest = math.floor(math.log10(found[0]))
    return lowest, max(lowest + 1, math.ceil(math.log10(found[-1])))
