"""Plans: which pre-trainings and fine-tunings the cells of tables need."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.finetuning.record import FinetuneRun
from bertkit.report.progress import Progress
from bertkit.reproduction.corpora import Corpora
from bertkit.reproduction.paper import TABLE_6, TABLE_7, TABLE_8, PaperColumn, PaperRow, PaperTable, System, find_tables
from bertkit.reproduction.plan import PlannedRow, ReproductionPlan
from bertkit.reproduction.scales import PAPER, SMOKE, Scale
from bertkit.scheduling import order_units
from bertkit.task_types import TextTask
from bertkit.tasks.glue import mrpc

OUTPUT = Path("out")


def plan(data: Path, *tables: PaperTable, scale: Scale = SMOKE) -> ReproductionPlan:
    return ReproductionPlan(tables, data, Corpora(scale=scale, files=(), output=OUTPUT))


def folders(row: PlannedRow) -> list[list[str]]:
    return [[str(path.relative_to(OUTPUT)) for path in cell.finetunings] for cell in row.cells]


@pytest.fixture
def mrpc_table() -> PaperTable:
    row = PaperRow(name="GPT", paper=(1.0, 2.0), system=System("gpt"))
    columns = (PaperColumn("MRPC", mrpc, "f1"), PaperColumn("accuracy", mrpc))
    return PaperTable(name="table", title="MRPC", columns=columns, rows=(row, replace(row, name="again")))


def test_a_finetuning_is_planned_once(data_folder: Path, mrpc_table: PaperTable) -> None:
    planned = plan(data_folder, mrpc_table, mrpc_table)
    units = planned.units()
    assert len(units) == 8 + 1
    assert len({id(unit) for unit in units}) == 1 + 1
    names = ["pretraining-gpt", "finetuning/gpt/glue-mrpc", "baselines/glue-mrpc.json"]
    assert [unit.name for unit in order_units(units)][-3:] == names


def test_every_learning_rate_has_a_run(data_folder: Path, mrpc_table: PaperTable) -> None:
    scale = replace(SMOKE, learning_rates=(5e-5, 3e-5))
    (row, _) = plan(data_folder, mrpc_table, scale=scale).tables[0].rows
    assert folders(row)[0] == ["finetuning/gpt/glue-mrpc/lr=5e-05", "finetuning/gpt/glue-mrpc/lr=3e-05"]


def test_perplexities_need_the_pretraining_only(data_folder: Path) -> None:
    table = replace(TABLE_6, columns=TABLE_6.columns[:1])
    planned = plan(data_folder, table)
    assert [unit.name for unit in planned.units()] == [
        f"pretraining-{row.system.name}" for row in table.rows if row.system
    ]
    assert planned.tables[0].rows[0].name == f"L=3, H=768, A=12 (here {SMOKE.sizes[0]})"


def test_rows_of_the_paper_alone_need_nothing(data_folder: Path) -> None:
    rows = [row for row in plan(data_folder, TABLE_7).tables[0].rows if row.row.system is None]
    assert rows
    assert all(row.model is None and row.cells == [] for row in rows)


def test_features_of_rows_and_columns_have_their_own_runs(data_folder: Path) -> None:
    by_name = {row.name: row for row in plan(data_folder, TABLE_7).tables[0].rows}
    assert folders(by_name["Features: Last Hidden"]) == [["finetuning/bert-base/conll2003-last"], []]
    assert folders(by_name["Fine-tuning BERT-Base"]) == [["finetuning/bert-base/conll2003"], []]
    row = plan(data_folder, TABLE_8).tables[0].rows[0]
    assert folders(row)[2] == ["finetuning/bert-base/conll2003-concat-last-four"]


def test_named_entities_have_cased_models_at_the_scale_of_the_paper(data_folder: Path) -> None:
    row = plan(data_folder, TABLE_8, scale=PAPER).tables[0].rows[1]
    mnli, entities, _ = folders(row)
    assert all(folder.startswith("finetuning/masks-100-0-0/glue-mnli/") for folder in mnli)
    assert all(folder.startswith("finetuning/masks-100-0-0-cased/conll2003/") for folder in entities)
    assert row.model is not None and row.model.name == "masks-100-0-0"
    (fine_tuning,) = (
        each for each in plan(data_folder, TABLE_7, scale=PAPER).tables[0].rows if each.name == "Fine-tuning BERT-Base"
    )
    assert fine_tuning.model is not None and fine_tuning.model.name == "bert-base-cased"  # whose costs are shown


def test_estimate_counts_every_seed_and_learning_rate(data_folder: Path, mrpc_table: PaperTable) -> None:
    scale = replace(SMOKE, learning_rates=(5e-5, 3e-5), seeds=3)
    estimate = plan(data_folder, mrpc_table, scale=scale).estimate()
    assert [each.name for each in estimate.pretrainings] == ["gpt"]
    assert estimate.finetunings == 6


def test_figure_5_needs_two_pretrainings(data_folder: Path) -> None:
    planned = plan(data_folder, *find_tables("figure5", SMOKE.snapshots))
    pretrainings = [unit.name for unit in order_units(planned.units()) if unit.shared]
    assert pretrainings == ["pretraining-bert-base", "pretraining-ltr"]


@pytest.mark.parametrize(
    ("network", "scale", "head"),
    [
        ("bert-base", SMOKE, ("mean", True)),
        ("ltr", SMOKE, ("mean", True)),
        ("gpt", SMOKE, ("cls", False)),
        ("bert-base", PAPER, ("cls", False)),
    ],
)
def test_heads_read_means_at_small_scales(
    network: str, scale: Scale, head: tuple[str, bool], data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[FinetuneRun] = []
    monkeypatch.setattr("bertkit.reproduction.plan.finetune", lambda run, progress: found.append(run))
    row = PaperRow(name="a system", paper=(None,), system=System(network))
    table = PaperTable(name="table", title="MRPC", columns=(PaperColumn("MRPC", mrpc),), rows=(row,))
    (cell,) = plan(data_folder, table, scale=scale).tables[0].rows[0].cells
    next(iter(cell.finetunings.values())).make(Progress("quiet"))
    task = found[0].task
    assert isinstance(task, TextTask)
    assert (task.pooling, task.pair_head) == head
