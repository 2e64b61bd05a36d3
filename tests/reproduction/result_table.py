"""A table with rows of every kind: with all figures, of the paper alone, and with a failed run."""

from __future__ import annotations

from bertkit.reproduction.result_tables import Cell, Cost, ResultRow, ResultTable

TABLE = ResultTable(
    name="table5",
    title="Tasks",
    columns=["MNLI-m", "LM ppl"],
    rows=[
        ResultRow(
            name="BERT-Base",
            cells=[Cell(ours=[50.0, 53.0, 56.0], paper=84.4), Cell(ours=[7.25], paper=None)],
            cost=Cost(
                parameters=1_230_000,
                pretraining_flop=4.5e15,
                paper_flop=2.24e19,
                pretraining_seconds=13,
                finetuning_seconds=7,
            ),
        ),
        ResultRow(name="Human", cells=[Cell(paper=82.1), Cell()]),
        ResultRow(name="Broken", cells=[Cell(paper=80.5, why="failed"), Cell(ours=[9.0], paper=5.84)]),
    ],
    notes=["The paper's figures are those of test."],
    command="bertkit reproduce table5",
)
