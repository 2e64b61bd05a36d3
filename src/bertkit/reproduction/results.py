"""The results of a reproduction: its finished runs as the cells of tables."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from bertkit.finetuning.baselines import read_baselines
from bertkit.finetuning.results import find_best_run, read_results
from bertkit.pretraining.cost import read_cost
from bertkit.reproduction.answers import Answer, Difference, judge
from bertkit.reproduction.claims import Claim
from bertkit.reproduction.comparisons import find_difference, read_example_interval
from bertkit.reproduction.estimate import estimate_run
from bertkit.reproduction.paper import PRETRAINED_BY_PAPER, PaperRow, System
from bertkit.reproduction.plan import (
    PlannedCell,
    PlannedComparison,
    PlannedRow,
    PlannedTable,
    ReproductionPlan,
)
from bertkit.reproduction.pretrainings import list_pretrainings
from bertkit.reproduction.result_tables import Cell, Cost, ResultRow, ResultTable
from bertkit.reproduction.scales import PAPER
from bertkit.reproduction.systems import SystemModel
from bertkit.runs import read_run
from bertkit.scores import is_defined

_PERCENT = 100


class ResultsReader:
    """Reads what the runs of a plan have measured; ``failed`` has the units that failed, by name, with the reason."""

    def __init__(self, plan: ReproductionPlan, failed: Mapping[str, str]) -> None:
        self._plan = plan
        self._failed = failed

    def read(self, command: str) -> list[ResultTable]:
        """All tables of the plan; ``command`` is shown as the one that made them."""
        return [self._read_table(planned, command) for planned in self._plan.tables]

    def _read_table(self, planned: PlannedTable, command: str) -> ResultTable:
        table = planned.table
        return ResultTable(
            name=table.name,
            title=table.title,
            columns=[column.name for column in table.columns],
            rows=[*(self._read_row(row) for row in planned.rows), *_read_baselines(planned)],
            notes=_list_notes(planned),
            command=command,
            curves=list(table.curves),
            answers=[self._read_answer(claim, comparisons) for claim, comparisons in planned.claims.items()],
        )

    def _read_answer(self, claim: Claim, comparisons: Sequence[PlannedComparison]) -> Answer:
        """Whether a claim holds, by the differences that are known."""
        found = [self._read_difference(each, num_columns=len(comparisons)) for each in comparisons]
        return judge(claim, [each for each in found if each is not None])

    def _read_difference(self, planned: PlannedComparison, *, num_columns: int) -> Difference | None:
        column = planned.better.column
        (better, _), (worse, _) = (self._read_cell(cell, None) for cell in (planned.better, planned.worse))
        examples = read_example_interval(planned.file, column.score)
        return find_difference(column.name, better.ours, worse.ours, examples, num_columns=num_columns)

    def _read_row(self, planned: PlannedRow) -> ResultRow:
        row, model = planned.row, planned.model
        if row.system is None or model is None:
            return ResultRow(name=row.name, cells=[Cell(paper=each) for each in row.paper])
        cells: list[Cell] = []
        seconds: dict[str, float] = {}
        for cell, paper in zip(planned.cells, row.paper, strict=True):
            match cell.column.kind:
                case "perplexity":
                    cells.append(_read_perplexity(model, paper))
                case "average":
                    cells.append(_average(cells, paper))
                case "test":
                    cells.append(Cell(paper=paper))
                case "dev":
                    assert cell.benchmark is not None
                    read, seconds[cell.benchmark.name] = self._read_cell(cell, paper)
                    cells.append(read)
        return ResultRow(
            name=planned.name,
            cells=cells,
            cost=_read_costs(row.system, model, sum(seconds.values())),
            step=model.step,
            system=_name_system(row, row.system),
        )

    def _read_cell(self, cell: PlannedCell, paper: float | None) -> tuple[Cell, float]:
        """The scores with the learning rate that is best on dev, and the seconds of all learning rates."""
        results = {path: read_results(path) for path, unit in cell.finetunings.items() if unit.is_done()}
        if not results:
            has_failed = any(unit.name in self._failed for unit in cell.finetunings.values())
            return Cell(paper=paper, why="failed" if has_failed else ""), 0.0
        best = results[find_best_run(results)]
        cell_of_best = _cell([seed.scores for seed in best.seeds], cell.column.score, paper)
        return cell_of_best, sum(seed.seconds for each in results.values() for seed in each.seeds)


def _read_baselines(planned: PlannedTable) -> list[ResultRow]:
    """A row for each baseline that a task of the table has."""
    columns = list(zip(planned.table.columns, planned.baselines, strict=True))
    names = list(dict.fromkeys(name for _, baselines in columns if baselines for name in baselines.names))
    rows = []
    for name in names:
        cells: list[Cell] = []
        for column, baselines in columns:
            found = read_baselines(baselines.file) if baselines and baselines.unit.is_done() else []
            scores = [each.scores for each in found if each.name == name]
            cells.append(_average(cells, None) if column.kind == "average" else _cell(scores, column.score, None))
        rows.append(ResultRow(name=f"{name[0].upper()}{name[1:]}", cells=cells))
    return rows


def _cell(scores: Sequence[Mapping[str, float]], name: str, paper: float | None) -> Cell:
    """The score ``name`` of each, in per cent; no figure if one of them is undefined."""
    found = [_PERCENT * each[name] for each in scores if name in each]
    return Cell(ours=found, paper=paper) if all(map(is_defined, found)) else Cell(paper=paper, why="undefined")


def _read_perplexity(model: SystemModel, paper: float | None) -> Cell:
    run = model.pretraining
    heldout = read_run(run).get("heldout", {}) if run and (run / "run.json").exists() else {}
    found = [value for name, value in heldout.items() if name.endswith("_perplexity")]
    return Cell(ours=found[:1], paper=paper)


def _average(cells: Sequence[Cell], paper: float | None) -> Cell:
    """The mean of the columns; none while one is missing."""
    means = [summary.mean for cell in cells if (summary := cell.summary) is not None]
    return Cell(ours=[statistics.fmean(means)] if len(means) == len(cells) else [], paper=paper)


def _read_costs(system: System, model: SystemModel, finetuning_seconds: float) -> Cost:
    paper_flop = None
    if system.network in PRETRAINED_BY_PAPER and system.match is None:
        paper_flop = _count_paper_flop(system.network, model.share)
    if model.pretraining is None or not (model.pretraining / "model").exists():
        return Cost(paper_flop=paper_flop, finetuning_seconds=finetuning_seconds)
    cost = read_cost(model.pretraining, until=None if system.snapshot is None else model.step)
    return Cost(
        parameters=cost.parameters,
        pretraining_flop=cost.flop,
        paper_flop=paper_flop,
        pretraining_seconds=cost.seconds,
        pretraining_joules=cost.joules,
        finetuning_seconds=finetuning_seconds,
    )


@cache
def _count_paper_flop(network: str, share: float) -> float:
    """The floating-point operations of the first ``share`` of a network's steps with the paper's settings."""
    return estimate_run(network, list_pretrainings(PAPER)[network].sketch(), share=share).flop


def _name_system(row: PaperRow, system: System) -> str:
    """One name for a system after any number of steps; on its frozen features it is another system."""
    name = replace(system, snapshot=None).name
    return f"{name}:{row.features}" if row.features else name


def _list_notes(planned: PlannedTable) -> list[str]:
    """The note of the table, and which files replace missing ones."""
    benchmarks = [cell.benchmark for row in planned.rows for cell in row.cells if cell.benchmark is not None]
    replaced = sorted({each.note for each in benchmarks if each.note})
    return [*filter(None, [planned.table.note]), *replaced]
