"""Tables with our figures beside the paper's, and their costs."""

from __future__ import annotations

from dataclasses import replace

from tests.reproduction.result_table import TABLE

from bertkit.reproduction.result_tables import Cell, Cost, ResultRow


def test_a_cell_shows_our_figure_and_the_papers() -> None:
    shown = TABLE.markdown()
    assert shown.startswith("## Table 5. Tasks\n")
    assert "| BERT-Base | 53.0 ± 3.0 / 84.4 " in shown
    assert " 7.2 / – " in shown.replace("7.3", "7.2")
    costs = ["1.23 M", "4.5e+15 / 2.2e+19", "13 s", "7 s"]
    assert any([cell.strip() for cell in line.split("|")[-5:-1]] == costs for line in shown.splitlines())
    assert "| Human     | – / 82.1 " in shown
    assert "| Broken    | failed / 80.5 " in shown
    assert "- The paper's figures are those of test.\n" in shown
    assert "$ bertkit reproduce table5" in shown


def test_operations_that_are_not_known_are_a_dash() -> None:
    assert Cost(pretraining_flop=4.5e15).cells()[1] == "4.5e+15 / –"
    assert Cost(paper_flop=2.24e19).cells()[1] == "– / 2.2e+19"
    assert Cost().cells() == ["–", "– / –", "–", "–", "–"]


def test_energy_has_a_column_where_the_system_told_it() -> None:
    assert "energy" not in TABLE.markdown()
    rows = [ResultRow(name="known", cells=[], cost=Cost(pretraining_joules=5e6)), ResultRow(name="not", cells=[])]
    header, _, known, unknown = replace(TABLE, columns=[], rows=rows).markdown().splitlines()[2:6]
    assert header.endswith("| pre-training energy |")
    assert known.split("|")[-2].strip() == "1,388.9 Wh"
    assert unknown.split("|")[-2].strip() == "–"


def test_baselines_have_neither_a_cost_nor_figures_of_the_paper() -> None:
    assert ResultRow(name="Bag of words", cells=[Cell(ours=[50.0])]).is_baseline
    assert not ResultRow(name="Human", cells=[Cell(paper=90.0)]).is_baseline
    assert not ResultRow(name="BiDAF", cells=[Cell(ours=[50.0])], cost=Cost()).is_baseline
