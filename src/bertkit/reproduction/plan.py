"""The plan of a reproduction: the pre-trainings and fine-tunings that the cells of some tables need, each once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bertkit.config.settings import Setting, apply
from bertkit.finetuning.baselines import write_baselines
from bertkit.finetuning.defaults import finetuning_profile_settings, small_head_settings
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import find_best_run, read_results
from bertkit.finetuning.run import finetune
from bertkit.report.progress import Progress
from bertkit.reproduction.benchmarks import Benchmark, find_benchmark
from bertkit.reproduction.claims import Claim, find_claims
from bertkit.reproduction.comparisons import write_example_intervals
from bertkit.reproduction.corpora import Corpora
from bertkit.reproduction.estimate import ReproductionEstimate, estimate_pretrainings, measure_speed
from bertkit.reproduction.paper import PaperColumn, PaperRow, PaperTable, System
from bertkit.reproduction.pretrainings import Settings
from bertkit.reproduction.systems import SystemModel, Systems
from bertkit.runs import read_end
from bertkit.scheduling import Unit, order_units
from bertkit.task_types import FileTask
from bertkit.tasks.conll2003 import conll2003

_SETTINGS_AT_ANY_SCALE = ("lm_loss_weight", "task.both_orders", "task.crf", "task.context")
"""Published settings that small scales share: what is trained, unlike the learning rate and the number of epochs."""


@dataclass(frozen=True, kw_only=True)
class PlannedCell:
    """The fine-tunings of one cell by output folder, one per learning rate; none where the cell needs none."""

    column: PaperColumn
    benchmark: Benchmark | None
    finetunings: dict[Path, Unit]


@dataclass(frozen=True, kw_only=True)
class PlannedRow:
    """A row with its system and cells; ``model`` is None for a row of the paper's figures alone."""

    row: PaperRow
    name: str
    model: SystemModel | None
    cells: list[PlannedCell]


@dataclass(frozen=True, kw_only=True)
class PlannedBaselines:
    """The baselines of a benchmark by ``names``, and the unit that writes their scores to ``file``."""

    names: list[str]
    file: Path
    unit: Unit


@dataclass(frozen=True, kw_only=True)
class PlannedComparison:
    """Two cells of a column, and the unit that writes the interval over examples of their difference to ``file``."""

    better: PlannedCell
    worse: PlannedCell
    file: Path
    unit: Unit


@dataclass(frozen=True, kw_only=True)
class PlannedTable:
    """A table with its planned rows, and the comparisons that decide each of its claims.

    ``baselines`` has those of each column, None for a column without a task.
    """

    table: PaperTable
    rows: list[PlannedRow]
    baselines: list[PlannedBaselines | None]
    claims: dict[Claim, list[PlannedComparison]]


class ReproductionPlan:
    """Everything that ``tables`` need, below the output folder of ``corpora``. ``data`` has the files of the tasks."""

    def __init__(self, tables: Sequence[PaperTable], data: Path, corpora: Corpora) -> None:
        self._scale = corpora.scale
        self._data = data
        self._output = corpora.output
        self._systems = Systems(corpora)
        self._benchmarks: dict[tuple[str, str | None], Benchmark] = {}
        self._finetunings: dict[tuple[str, str], dict[Path, Unit]] = {}
        self._baselines: dict[str, PlannedBaselines] = {}
        self.tables = [self._plan_table(table) for table in tables]

    def units(self) -> list[Unit]:
        """The fine-tunings and pre-trainings that the cells are read from, without what these need."""
        found: list[Unit] = []
        for row in (row for table in self.tables for row in table.rows if row.model is not None):
            assert row.model is not None
            for cell in row.cells:
                found += [row.model.unit] if cell.column.kind == "perplexity" else cell.finetunings.values()
        comparisons = [each.unit for table in self.tables for claim in table.claims.values() for each in claim]
        return [*found, *(each.unit for each in self._baselines.values()), *comparisons]

    def estimate(self) -> ReproductionEstimate:
        """What the plan costs on this machine."""
        units = order_units(self.units())
        known = self._systems.pretrainings
        pretrainings = [known[unit.name] for unit in units if unit.name in known]
        finetunings = {unit.name for runs in self._finetunings.values() for unit in runs.values()}
        return ReproductionEstimate(
            pretrainings=estimate_pretrainings(pretrainings, self._systems.network("bert-base")),
            finetunings=self._scale.seeds * len(finetunings),
            speed=measure_speed(),
        )

    def _plan_table(self, table: PaperTable) -> PlannedTable:
        rows = {row.name: self._plan_row(row, table.columns) for row in table.rows}
        return PlannedTable(
            table=table,
            rows=list(rows.values()),
            baselines=[self._plan_baselines(column.task) for column in table.columns],
            claims={each: self._plan_claim(each, rows[each.better], rows[each.worse]) for each in find_claims(table)},
        )

    def _plan_claim(self, claim: Claim, better: PlannedRow, worse: PlannedRow) -> list[PlannedComparison]:
        return [
            _plan_comparison(one, other, self._output, self._scale.dev_limit)
            for one, other in zip(better.cells, worse.cells, strict=True)
            if one.finetunings and one.column.name in (claim.columns or [one.column.name])
        ]

    def _plan_baselines(self, task: FileTask | None) -> PlannedBaselines | None:
        """The baselines of a task, on the examples that all systems are trained and scored on."""
        if task is None:
            return None
        if task.name not in self._baselines:
            located = self._find_benchmark(task, None).task
            file = self._output / "baselines" / f"{task.name.replace(':', '-')}.json"
            self._baselines[task.name] = PlannedBaselines(
                names=list(located.baselines()),
                file=file,
                unit=Unit(
                    name=str(file.relative_to(self._output)),
                    make=lambda progress: write_baselines(located, self._scale.limit, self._scale.dev_limit, file),
                    is_done=file.exists,
                ),
            )
        return self._baselines[task.name]

    def _find_benchmark(self, task: FileTask, features: str | None) -> Benchmark:
        key = (task.name, features)
        if key not in self._benchmarks:
            self._benchmarks[key] = find_benchmark(task, features, self._data, self._scale)
        return self._benchmarks[key]

    def _plan_row(self, row: PaperRow, columns: Sequence[PaperColumn]) -> PlannedRow:
        if row.system is None:
            return PlannedRow(row=row, name=row.name, model=None, cells=[])
        name = row.name
        if row.shows_size and self._scale.profile != "paper":
            name = f"{name} (here {self._systems.network(row.system.network).size})"
        cells = [self._plan_cell(row, column) for column in columns]
        found = [self._find_network(row.system, column.task) for column in columns if column.task is not None]
        networks = {network.name: network for network in found}
        model = found[0] if len(networks) == 1 else self._systems.find(row.system)
        return PlannedRow(row=row, name=name, model=model, cells=cells)

    def _plan_cell(self, row: PaperRow, column: PaperColumn) -> PlannedCell:
        if column.task is None:
            return PlannedCell(column=column, benchmark=None, finetunings={})
        assert row.system is not None
        benchmark = self._find_benchmark(column.task, row.features or column.features)
        network = self._find_network(row.system, column.task)
        return PlannedCell(column=column, benchmark=benchmark, finetunings=self._plan_finetunings(network, benchmark))

    def _find_network(self, system: System, task: FileTask) -> SystemModel:
        """The pre-trained network of a system for a task: for named entities a cased one, where the scale has it."""
        if task.name == conll2003.name and self._systems.has_cased(system):
            system = replace(system, cased=True)
        return self._systems.find(system)

    def _plan_finetunings(self, model: SystemModel, benchmark: Benchmark) -> dict[Path, Unit]:
        """A run for every learning rate that is tried, by its folder."""
        key = (model.name, benchmark.name)
        if key not in self._finetunings:
            folder = self._output / "finetuning" / model.name / benchmark.name.replace(":", "-")
            settings = self._settings(model, benchmark)
            rates = self._scale.learning_rates
            if "optimizer.lr" in settings or len(rates) == 1:
                variants = {folder: {"optimizer.lr": rates[0], **settings}}
            else:
                variants = {folder / f"lr={rate:g}": {**settings, "optimizer.lr": rate} for rate in rates}
            self._finetunings[key] = {
                output: self._finetuning_unit(model, benchmark, variant, output) for output, variant in variants.items()
            }
        return self._finetunings[key]

    def _settings(self, model: SystemModel, benchmark: Benchmark) -> Settings:
        """The settings of the task, of the published profile, and of the system; later ones override earlier ones."""
        published: Settings = finetuning_profile_settings(model.profile, benchmark.task)
        if self._scale.profile != "paper":
            published = {path: value for path, value in published.items() if path in _SETTINGS_AT_ANY_SCALE}
        if self._scale.mean_heads and model.profile in ("bert", "roberta"):
            published = {**published, **small_head_settings(benchmark.task)}
        return {**benchmark.settings, **published, **model.settings}

    def _finetuning_unit(self, model: SystemModel, benchmark: Benchmark, settings: Settings, output: Path) -> Unit:
        scale = self._scale
        run = FinetuneRun(
            task=benchmark.task,
            model=model.model,
            output=output,
            seeds=scale.seeds,
            epochs=scale.epochs,
            batch_size=scale.finetuning_batch_size,
            limit=scale.limit,
            dev_limit=scale.dev_limit,
            baseline=False,  # it is the same for all systems: each task has one file of them
        )
        run = apply(run, [Setting(path, value, f"--scale {scale.name}") for path, value in settings.items()])
        return Unit(
            name=str(output.relative_to(self._output)),
            make=lambda progress: finetune(run, progress),
            is_done=(output / "results.json").exists,
            failure=lambda: read_end(output).failure,
            needs=[model.unit],
        )


def _plan_comparison(better: PlannedCell, worse: PlannedCell, output: Path, dev_limit: int | None) -> PlannedComparison:
    # System and task of both cells: of OUT/finetuning/SYSTEM/TASK/lr=3e-05 the first two.
    folders = (next(iter(cell.finetunings)).relative_to(output / "finetuning") for cell in (better, worse))
    name = "--".join("-".join(folder.parts[:2]) for folder in folders)
    file = output / "comparisons" / f"{name}.json"

    def make(progress: Progress) -> None:
        first, second = (
            find_best_run({run: read_results(run) for run in each.finetunings}) for each in (better, worse)
        )
        write_example_intervals(first, second, dev_limit, file, progress)

    needs = [*better.finetunings.values(), *worse.finetunings.values()]
    unit = Unit(name=f"comparisons/{name}", make=make, is_done=file.exists, needs=needs)
    return PlannedComparison(better=better, worse=worse, file=file, unit=unit)
