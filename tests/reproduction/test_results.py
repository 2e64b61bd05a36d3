"""Results: finished runs as the cells of tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.config.records import to_plain
from bertkit.config.settings import Setting, apply
from bertkit.finetuning.results import FinetuneResult, SeedResult
from bertkit.report.progress import Progress
from bertkit.reproduction.corpora import Corpora
from bertkit.reproduction.paper import PaperColumn, PaperRow, PaperTable, System
from bertkit.reproduction.plan import ReproductionPlan
from bertkit.reproduction.result_tables import ResultRow, ResultTable
from bertkit.reproduction.results import ResultsReader
from bertkit.reproduction.scales import SMOKE
from bertkit.runs import FORMAT
from bertkit.storage.atomic import write_json
from bertkit.tasks.conll2003 import conll2003
from bertkit.tasks.glue import mrpc, rte
from bertkit.tasks.swag import swag

COLUMNS = (
    PaperColumn("MRPC", mrpc, "f1"),
    PaperColumn("RTE", rte),
    PaperColumn("Average", kind="average"),
    PaperColumn("test", kind="test"),
)
TABLE = PaperTable(
    name="table9",
    title="GLUE",
    columns=COLUMNS,
    rows=(
        PaperRow(name="Human", paper=(90.0, None, None, 91.0)),
        PaperRow(name="BERT", paper=(88.9, 66.4, 79.6, None), system=System("bert-base")),
    ),
    note="A note.",
)


def write_result(folder: Path, *scores: dict[str, float]) -> None:
    seeds = [
        SeedResult(seed=seed, epochs=[], best_epoch=1, scores=each, seconds=7.0, examples_per_second=1.0)
        for seed, each in enumerate(scores)
    ]
    mean = sum(each["accuracy"] for each in scores) / len(scores)
    result = FinetuneResult(folder=folder, metric="accuracy", seeds=seeds, mean=mean, sd=None, best=seeds[0])
    folder.mkdir(parents=True)
    write_json(folder / "results.json", to_plain(result))


def read(
    table: PaperTable,
    output: Path,
    data: Path,
    failed: dict[str, str] | None = None,
    rates: tuple[float, ...] = (1e-3,),
) -> ResultTable:
    scale = apply(SMOKE, [Setting("learning_rates", list(rates), "test")])
    plan = ReproductionPlan([table], data, Corpora(scale=scale, files=(), output=output))
    (found,) = ResultsReader(plan, failed or {}).read("bertkit reproduce table1")
    return found


def bert_row(found: ResultTable) -> ResultRow:
    return found.rows[1]


def test_cells_are_per_cent_of_the_scores_of_all_seeds(data_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "finetuning" / "bert-base"
    write_result(folder / "glue-mrpc", {"accuracy": 0.5, "f1": 0.75}, {"accuracy": 0.5, "f1": 0.25})
    write_result(folder / "glue-rte", {"accuracy": 0.25})
    row = bert_row(read(TABLE, tmp_path, data_folder))
    assert [cell.ours for cell in row.cells] == [[75.0, 25.0], [25.0], [37.5], []]
    assert [cell.paper for cell in row.cells] == [88.9, 66.4, 79.6, None]
    assert row.cost is not None
    assert row.cost.finetuning_seconds == 21.0
    assert row.cost.parameters is None, "there is no pre-trained model"


def test_the_papers_operations_are_those_of_its_settings(data_folder: Path, tmp_path: Path) -> None:
    systems = [
        System("bert-base"),
        System("bert-large"),
        System("ltr", snapshot=1),
        System("ltr", lstm=True),
        System("masks-0-0-100"),
        System("ltr", match="flop"),
        System("gpt"),
    ]
    rows = tuple(PaperRow(name=each.name, paper=(None,), system=each) for each in systems)
    table = PaperTable(name="table9", title="t", columns=(PaperColumn("RTE", rte),), rows=rows)
    found = read(table, tmp_path, data_folder).rows[: len(rows)]
    assert [row.system for row in found] == [replace(each, snapshot=None).name for each in systems]
    base, large, half, lstm, masks, matched, gpt = [row.cost.paper_flop if row.cost else None for row in found]
    # 6 FLOP per parameter of the layers (85 M) and token: 128 tokens in 9 of 10 steps and 512 in the last tenth.
    least = 6 * 85e6 * 256 * (0.9 * 128 + 0.1 * 512) * 1e6
    assert base is not None
    assert least < base < 1.5 * least
    assert large is not None
    assert 3 * base < large < 4 * base, "302 M parameters of layers"
    assert lstm is not None
    assert half is not None
    assert half / lstm == pytest.approx(0.5 / (0.9 + 0.1 * 4.3), rel=0.02), "the first half has no row of 512 tokens"
    assert masks == base
    assert (matched, gpt) == (None, None)


def test_features_of_a_system_are_a_system_of_their_own(data_folder: Path, tmp_path: Path) -> None:
    rows = tuple(
        PaperRow(name=f"{each}", paper=(None,), system=System("bert-base"), features=each) for each in (None, "last")
    )
    table = PaperTable(name="table9", title="t", columns=(PaperColumn("dev", conll2003, "f1"),), rows=rows)
    found = read(table, tmp_path, data_folder)
    assert [row.system for row in found.rows if row.cost] == ["bert-base", "bert-base:last"]


def test_rows_without_a_system_show_the_paper_only(data_folder: Path, tmp_path: Path) -> None:
    found = read(TABLE, tmp_path, data_folder)
    assert [(cell.ours, cell.paper) for cell in found.rows[0].cells] == [([], 90.0), ([], None), ([], None), ([], 91.0)]
    assert found.rows[0].cost is None
    assert (found.heading, found.notes, found.command) == ("Table 9. GLUE", ["A note."], "bertkit reproduce table1")


def test_there_is_no_average_while_a_column_is_missing(data_folder: Path, tmp_path: Path) -> None:
    write_result(tmp_path / "finetuning" / "bert-base" / "glue-rte", {"accuracy": 0.25})
    row = bert_row(read(TABLE, tmp_path, data_folder))
    assert [cell.ours for cell in row.cells] == [[], [25.0], [], []]


def test_an_undefined_score_is_no_figure(data_folder: Path, tmp_path: Path) -> None:
    write_result(tmp_path / "finetuning" / "bert-base" / "glue-rte", {"accuracy": float("nan")})
    cell = bert_row(read(TABLE, tmp_path, data_folder)).cells[1]
    assert (cell.ours, cell.why, str(cell)) == ([], "undefined", "undefined / 66.4")


def test_failed_runs_are_marked(data_folder: Path, tmp_path: Path) -> None:
    row = bert_row(read(TABLE, tmp_path, data_folder, {"finetuning/bert-base/glue-rte": "the loss is not finite"}))
    assert [cell.why for cell in row.cells] == ["", "failed", "", ""]


def test_the_learning_rate_that_is_best_on_dev_counts(data_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "finetuning" / "bert-base" / "glue-rte"
    write_result(folder / "lr=0.001", {"accuracy": 0.25})
    write_result(folder / "lr=0.002", {"accuracy": 0.75})
    row = bert_row(read(TABLE, tmp_path, data_folder, rates=(1e-3, 2e-3)))
    assert row.cells[1].ours == [75.0]
    assert row.cost is not None
    assert row.cost.finetuning_seconds == 14.0, "the time of both"


def test_perplexity_is_that_of_the_pretraining(data_folder: Path, tmp_path: Path) -> None:
    row = PaperRow(name="BERT", paper=(3.99,), system=System("bert-base"))
    table = PaperTable(name="table9", title="Size", columns=(PaperColumn("LM ppl", kind="perplexity"),), rows=(row,))
    (cell,) = read(table, tmp_path, data_folder).rows[0].cells
    assert (cell.ours, cell.paper) == ([], 3.99)
    run = tmp_path / "pretraining" / "bert-base"
    run.mkdir(parents=True)
    heldout = {"mlm": 2.0, "mlm_perplexity": 7.5}
    write_json(run / "run.json", {"format": FORMAT, "kind": "pretrain", "run": {}, "ended": "done", "heldout": heldout})
    (cell,) = read(table, tmp_path, data_folder).rows[0].cells
    assert cell.ours == [7.5]


def test_replaced_files_are_noted(data_folder: Path, tmp_path: Path) -> None:
    if not swag.at(data_folder / "swag").files.missing("swag", "train"):
        pytest.skip("the data has the files of SWAG")
    row = PaperRow(name="BERT", paper=(81.6,), system=System("bert-base"))
    table = PaperTable(name="table9", title="SWAG", columns=(PaperColumn("dev", swag),), rows=(row,))
    (note,) = read(table, tmp_path, data_folder).notes
    assert note.startswith("swag: codah-train.csv")


def test_baselines_have_rows_on_the_examples_of_all_systems(data_folder: Path, tmp_path: Path) -> None:
    scale = apply(SMOKE, [Setting("limit", 13, "test"), Setting("dev_limit", 7, "test")])
    plan = ReproductionPlan([TABLE], data_folder, Corpora(scale=scale, files=(), output=tmp_path))
    (before,) = ResultsReader(plan, {}).read("command")
    assert [row.name for row in before.rows] == ["Human", "BERT", "Most frequent answer", "Bag of words"]
    assert before.rows[2].cells[0].ours == []
    for unit in plan.units():
        if unit.name.startswith("baselines/"):
            unit.make(Progress("quiet"))
            assert unit.is_done()
    (found,) = ResultsReader(plan, {}).read("command")
    for row in found.rows[2:]:
        (score,) = row.cells[1].ours
        assert score / 100 * 7 == pytest.approx(round(score / 100 * 7)), "7 dev examples"
        assert row.cells[2].ours == [pytest.approx((row.cells[0].ours[0] + score) / 2)]
        assert row.cells[3].ours == []
