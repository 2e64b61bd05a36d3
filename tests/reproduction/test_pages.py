"""The page of all tables, and their pictures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.reproduction.result_table import TABLE

from bertkit.errors import BertkitError
from bertkit.reproduction.pages import plot_table, write_tables
from bertkit.reproduction.result_tables import Cell, Cost, ResultRow, ResultTable


def test_the_page_shows_every_table_and_its_picture(tmp_path: Path) -> None:
    rows = [
        ResultRow(name=f"LTR, {place}/2", cells=[Cell(ours=[50.0 + place])], cost=Cost(), step=place)
        for place in (1, 2)
    ]
    curve = replace(TABLE, name="figure5", columns=["MNLI-m"], rows=rows, curves=["LTR"])
    nothing = replace(TABLE, name="table3", rows=[TABLE.rows[1]])
    names = ["figure5", "table3", "table4", "table5"]
    write_tables([TABLE], tmp_path, "# One", names)
    page = write_tables([curve, nothing], tmp_path, "# All", names).read_text()
    assert page.startswith("# All\n")
    assert page.index(curve.heading) < page.index(nothing.heading) < page.index(TABLE.heading), "in their order"
    for table in (TABLE, curve, nothing):
        assert (tmp_path / f"{table.name}.md").read_text() in page
        assert table.markdown() in page
        assert json.loads((tmp_path / f"{table.name}.json").read_text())["title"] == table.title
    assert (tmp_path / "table5.svg").stat().st_size > 10_000
    assert (tmp_path / "figure5.svg").stat().st_size > 10_000
    assert not (tmp_path / "table3.svg").exists()
    assert "table3.svg" not in page
    assert "costs.svg" not in page, "there is one point only"


def test_the_picture_of_costs_has_the_tables_of_earlier_commands(tmp_path: Path) -> None:
    other = ResultRow(name="LTR", cells=[Cell(ours=[49.0])], cost=Cost(pretraining_flop=1e15))
    one = replace(TABLE, name="table6", columns=["MNLI-m"], rows=[other])
    names = ["table5", "table6"]
    assert "costs.svg" not in write_tables([TABLE], tmp_path, "# One", names).read_text()
    path = tmp_path / "table5.json"
    written = json.loads(path.read_text())
    for row in written["rows"]:
        del row["system"]
        if row["cost"]:
            del row["cost"]["paper_flop"]
    path.write_text(json.dumps(written))
    page = write_tables([one], tmp_path, "# Two", names).read_text()
    assert page.index(one.heading) < page.index("## Score against cost")
    assert "![Score against cost](costs.svg)" in page
    assert (tmp_path / "costs.svg").stat().st_size > 10_000


def test_a_damaged_table_is_an_error_that_says_how_to_make_it_again(tmp_path: Path) -> None:
    write_tables([TABLE], tmp_path, "# One", ["table5"])
    (tmp_path / "table5.json").write_text('{"name": "tab')
    other = replace(TABLE, name="table8")
    with pytest.raises(
        BertkitError,
        match=rf"table5\.json is not readable JSON: .* Make it again: bertkit reproduce table5 -o {tmp_path}",
    ):
        write_tables([other], tmp_path, "# Two", ["table5", "table8"])
    write_tables([TABLE], tmp_path, "# One", ["table5", "table8"])
    assert TABLE.heading in (tmp_path / "reproduction.md").read_text()


def test_a_picture_has_only_columns_and_rows_with_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr("bertkit.reproduction.pages.save", lambda figure, output: figures.append(figure))
    rows = [
        ResultRow(name="ELMo", cells=[Cell(ours=[38.0], paper=95.7), Cell(paper=92.2)], cost=Cost()),
        ResultRow(name="CSE", cells=[Cell(), Cell(paper=93.1)]),
        ResultRow(name="Lookup", cells=[Cell(ours=[48.0]), Cell()]),
        ResultRow(name="Overlap", cells=[Cell(), Cell(ours=[22.0])]),
    ]
    plot_table(replace(TABLE, name="table7", columns=["dev F1", "test F1"], rows=rows), tmp_path / "a.svg")
    (panel,) = figures[0].axes
    assert panel.get_title(loc="left") == "dev F1"
    assert [label.get_text() for label in panel.get_yticklabels()] == ["ELMo"]
    assert {text.get_text() for text in figures[0].legends[0].get_texts()} == {"ours", "paper", "Lookup"}


def test_baselines_are_lines_and_points_of_curves_do_not_cover_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr("bertkit.reproduction.pages.save", lambda figure, output: figures.append(figure))
    cost = Cost(parameters=99)
    systems = [ResultRow(name=name, cells=[Cell(ours=[50.0, 51.0], paper=84.0)], cost=cost) for name in ("A", "B")]
    chance = ResultRow(name="Most frequent answer", cells=[Cell(ours=[35.0])])
    facts: dict[str, Any] = {"title": "t", "columns": ["MNLI"], "notes": [], "command": "c"}
    plot_table(ResultTable(name="table5", rows=[*systems, chance], **facts), tmp_path / "a.svg")
    (panel,) = figures[0].axes
    assert [label.get_text() for label in panel.get_yticklabels()] == ["A", "B"]
    assert [35.0, 35.0] in [list(np.asarray(line.get_xdata())) for line in panel.get_lines()]
    points = [
        ResultRow(name=f"{curve} {step}", cells=[Cell(ours=[50.0])], cost=cost, step=step)
        for curve in ("masked", "left")
        for step in (100, 200)
    ]
    plot_table(
        ResultTable(name="figure5", rows=[*points, chance], curves=["masked", "left"], **facts), tmp_path / "b.svg"
    )
    (panel,) = figures[1].axes
    curves = [line for line in panel.get_lines() if line.get_marker() in ("o", "s")]
    assert len({tuple(np.asarray(line.get_xdata())) for line in curves}) == 2
