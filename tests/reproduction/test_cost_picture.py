"""The picture of score against cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bertkit.reproduction.cost_picture import collect_panels, draw_costs, name_systems
from bertkit.reproduction.result_tables import Cell, Cost, ResultRow, ResultTable

BERT = "bert-base"


def row(
    name: str, system: str, flop: float | None, *cells: Cell, paper_flop: float | None = None, step: int | None = None
) -> ResultRow:
    cost = Cost(pretraining_flop=flop, paper_flop=paper_flop)
    return ResultRow(name=name, cells=list(cells), cost=cost, step=step, system=system)


def table(name: str, columns: list[str], *rows: ResultRow, curves: tuple[str, ...] = ()) -> ResultTable:
    return ResultTable(
        name=name, title="T", columns=columns, rows=list(rows), notes=[], command="c", curves=list(curves)
    )


GLUE = table(
    "table1",
    ["MRPC", "Average"],
    row("BERT-Base", BERT, 1e14, Cell(ours=[80.0], paper=88.9), Cell(ours=[60.0], paper=79.6), paper_flop=2e19),
    row("BiLSTM", "bilstm", 3e14, Cell(ours=[81.0], paper=84.9), Cell()),
)
SIZES = table(
    "table6",
    ["LM ppl", "MRPC", "SST-2"],
    row("L=3", "size-1", 4e13, Cell(ours=[9.0], paper=5.84), Cell(ours=[68.0, 70.0]), Cell(ours=[50.0])),
    row("L=12", BERT, 1e14, Cell(ours=[7.0]), Cell(ours=[69.0], paper=86.7), Cell(ours=[52.0]), paper_flop=2e19),
    row("No cost", "glove", None, Cell(), Cell(ours=[60.0]), Cell(ours=[51.0])),
    ResultRow(name="Most frequent answer", cells=[Cell(), Cell(ours=[65.0]), Cell(ours=[50.0])]),
    ResultRow(name="Human", cells=[Cell(), Cell(paper=99.0), Cell()]),
)
MASKS = table("table8", ["MNLI"], row("MASK 80", BERT, 1e14, Cell(ours=[51.0], paper=84.2), paper_flop=2e19))
CURVES = table(
    "figure5",
    ["MNLI-m"],
    row("Masked, 1/2", BERT, 5e13, Cell(ours=[48.0]), paper_flop=1e19, step=5),
    row("Masked, 2/2", BERT, 1e14, Cell(ours=[51.0]), paper_flop=2e19, step=10),
    curves=("Masked",),
)


def draw(tables: list[ResultTable], monkeypatch: pytest.MonkeyPatch) -> Figure:
    figures: list[Figure] = []
    monkeypatch.setattr("bertkit.reproduction.cost_picture.save", lambda figure, output: figures.append(figure))
    assert draw_costs(tables, Path("costs.svg"))
    (figure,) = figures
    return figure


def points(panel: Axes, *, hollow: bool) -> list[tuple[float, float]]:
    """The markers of a panel; the first lines have none, and are the entries of the legend."""
    found = []
    for line in panel.get_lines():
        if line.get_marker() not in ("None", "", None) and (line.get_markerfacecolor() == "none") == hollow:
            found += list(zip(np.asarray(line.get_xdata()), np.asarray(line.get_ydata()), strict=True))
    return sorted(found)


def test_a_panel_is_a_score_of_a_task_in_all_tables() -> None:
    panels = collect_panels([GLUE, SIZES, MASKS, CURVES])
    titles = [(each.title, each.score) for each in panels]
    assert titles == [
        ("MRPC", "F1"),
        ("T, Average", "mean of the scores"),
        ("MRPC", "accuracy"),
        ("SST-2", "accuracy"),
        ("MNLI", "accuracy"),
    ], "two scores of MRPC, no perplexity, and both tables of MNLI together"
    accuracy = panels[2]
    assert {system: list(found) for system, found in accuracy.ours.items()} == {"size-1": [4e13], BERT: [1e14]}
    assert accuracy.ours["size-1"][4e13].mean == 69.0
    assert accuracy.paper == {BERT: {2e19: 86.7}}
    assert accuracy.baselines == {"Most frequent answer": 65.0}


def test_a_system_of_several_tables_is_one_with_its_first_name() -> None:
    names = name_systems([GLUE, SIZES, MASKS, CURVES])
    assert names == {BERT: "BERT-Base", "bilstm": "BiLSTM", "size-1": "L=3", "glove": "No cost"}
    (panel,) = collect_panels([MASKS, CURVES])
    assert {flop: score.mean for flop, score in panel.ours[BERT].items()} == {1e14: 51.0, 5e13: 48.0}
    assert panel.num_points == 2


def test_a_point_of_a_curve_without_the_name_of_its_system_belongs_to_its_curve() -> None:
    old = table("figure5", ["MNLI-m"], *(row(f"Masked, {n}", "", n, Cell()) for n in (1, 2)), curves=("Masked",))
    assert name_systems([old]) == {"Masked": "Masked"}


def test_the_last_of_the_papers_figures_counts() -> None:
    first = table("table5", ["SST-2"], row("BERT", BERT, 1e14, Cell(paper=93.5), paper_flop=2e19))
    later = table("table6", ["SST-2"], row("L=12", BERT, 1e14, Cell(paper=92.9), paper_flop=2e19))
    (panel,) = collect_panels([first, later])
    assert panel.paper == {BERT: {2e19: 92.9}}


def test_ours_are_filled_the_papers_hollow_and_baselines_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = draw([SIZES], monkeypatch)
    panel, other = figure.axes
    assert (panel.get_title(loc="left"), other.get_title(loc="left")) == ("MRPC", "SST-2")
    assert panel.get_xscale() == "log"
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("pre-training cost (FLOP)", "accuracy (%)")
    assert points(panel, hollow=False) == [(4e13, 69.0), (1e14, 69.0)]
    assert points(panel, hollow=True) == [(2e19, 86.7)]
    assert [65.0, 65.0] in [list(np.asarray(line.get_ydata())) for line in panel.get_lines()]
    assert panel.get_xlim() == other.get_xlim()
    low, high = panel.get_xlim()
    assert low < 4e13 < 2e19 < high
    ticks = [tick for tick in panel.get_xticks() if low <= tick <= high]
    assert np.allclose(np.log10(ticks), np.round(np.log10(ticks)))
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["L=3", "L=12", "hollow: the paper's figure", "Most frequent answer"]


def test_points_of_one_pretraining_are_connected_by_a_dotted_line(monkeypatch: pytest.MonkeyPatch) -> None:
    (panel,) = draw([MASKS, CURVES], monkeypatch).axes
    (line,) = [line for line in panel.get_lines() if len(np.asarray(line.get_xdata())) == 2]
    assert list(np.asarray(line.get_xdata())) == [5e13, 1e14]
    assert line.get_linestyle() == "--", "matplotlib's name for any dashes"


def test_panels_with_one_point_are_left_out_and_no_panel_is_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not draw_costs([MASKS], tmp_path / "costs.svg")
    assert not draw_costs([], tmp_path / "costs.svg")
    assert not (tmp_path / "costs.svg").exists()
    titles = [panel.get_title(loc="left") for panel in draw([GLUE, MASKS], monkeypatch).axes]
    assert titles == ["MRPC"]


def test_many_panels_have_several_rows_and_text_does_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ["QQP", "QNLI", "SST-2", "CoLA"]
    cells = [Cell(ours=[50.0, 60.0], paper=90.0) for _ in columns]
    systems = [row(f"System {n}", f"system-{n}", n * 1e14, *cells, paper_flop=n * 1e19) for n in range(1, 16)]
    figure = draw([table("table1", columns, *systems)], monkeypatch)
    assert len(figure.axes) == 4
    figure.draw_without_rendering()
    (legend,) = figure.legends
    boxes = [legend.get_window_extent(), *(panel.get_tightbbox() for panel in figure.axes)]
    found = [box for box in boxes if box is not None]
    assert len(found) == 5
    assert not any(one.overlaps(other) for place, one in enumerate(found) for other in found[:place])
    looks = {
        (line.get_color(), line.get_marker()) for line in figure.axes[1].get_lines() if line.get_marker() != "None"
    }
    assert len(looks) == 15, "no two systems look the same"
    assert figure.axes[0].get_xlabel() == ""
    assert figure.axes[3].get_xlabel() == "pre-training cost (FLOP)"
