"""Verbs take a pandas DataFrame or a Dataset where they take the path of a table."""

from __future__ import annotations

import csv
import re
import tempfile
from pathlib import Path

import pytest
from tests.formats.memory_tables import dataset, dataset_dict, frame

import bertkit
from bertkit.api.tables import TABLES
from bertkit.errors import BAD_DATA, BertkitError

QUICK = ["batch_size=13", "epochs=1", "limit=13"]


@pytest.fixture
def reviews(workspace: Path) -> dict[str, list[str]]:
    """The columns of the workspace's table."""
    with (workspace / "reviews.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_a_data_frame_trains_the_same_model_as_its_file(
    workspace: Path, reviews: dict[str, list[str]], tmp_path: Path
) -> None:
    tables = {"memory": frame(**reviews), "file": workspace / "reviews.csv"}
    found = {
        name: bertkit.finetune(table, model=workspace / "run", output=tmp_path / name, set=QUICK, progress="quiet")
        for name, table in tables.items()
    }
    assert found["memory"].best.scores == found["file"].best.scores
    (kept,) = (tmp_path / "memory" / TABLES).iterdir()
    assert kept.suffix == ".jsonl"
    again = bertkit.evaluate(tmp_path / "memory", output=tmp_path / "report", progress="quiet")
    assert again["accuracy"] == found["memory"].best.scores["accuracy"]
    repeated = bertkit.finetune(
        tables["memory"], model=workspace / "run", output=tmp_path / "memory", set=QUICK, progress="quiet"
    )
    assert repeated.best.scores == found["memory"].best.scores


def test_a_dataset_dict_has_its_own_dev_set(workspace: Path, tmp_path: Path) -> None:
    texts, labels = [f"a mill by river {row}" for row in range(20)], [row % 2 for row in range(20)]
    splits = dataset_dict(train=dataset(texts, labels), validation=dataset(texts[:6], labels[:6]))
    run = tmp_path / "run"
    bertkit.finetune(splits, model=workspace / "run", output=run, set=QUICK, progress="quiet")
    assert bertkit.load(run).task.labels == ("bad", "good")
    assert bertkit.evaluate(run, output=tmp_path / "own", progress="quiet").examples == 6
    given = bertkit.evaluate(run, data=dataset(texts[:4], labels[:4]), output=tmp_path / "given", progress="quiet")
    assert given.examples == 4


def test_a_dataset_dict_is_not_one_table(workspace: Path, tmp_path: Path) -> None:
    splits = dataset_dict(train=dataset(["a mill"], [0]), test=dataset(["a river"], [1]))
    tuned = workspace / "tuned"
    with pytest.raises(BertkitError, match=r"^input is a DatasetDict with train, test: give one of them"):
        bertkit.predict(tuned, splits, output=tmp_path / "p.csv")
    with pytest.raises(BertkitError, match=r"^the table is a DatasetDict with train, test: give one of them"):
        bertkit.load(tuned).predict(splits)


def test_predict_and_embed_read_a_data_frame(workspace: Path, reviews: dict[str, list[str]], tmp_path: Path) -> None:
    tuned, table = workspace / "tuned", frame(**reviews)
    bertkit.predict(tuned, table, output=tmp_path / "memory.csv", progress="quiet")
    bertkit.predict(tuned, workspace / "reviews.csv", output=tmp_path / "file.csv", progress="quiet")
    assert (tmp_path / "memory.csv").read_text() == (tmp_path / "file.csv").read_text()
    record = bertkit.embed(tuned, table, text="review", output=tmp_path / "vectors.npy", progress="quiet")
    assert record.rows == len(table)


def test_a_report_on_a_table_in_memory_names_no_temporary_file(
    workspace: Path, reviews: dict[str, list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, output = frame(**reviews), tmp_path / "report"
    found = bertkit.evaluate(workspace / "tuned", data=table, output=output, progress="plain")
    assert re.fullmatch(r"a table in memory \([0-9a-f]{8}\)", found.task)
    written = [(output / name).read_text(encoding="utf-8") for name in ("report.json", "report.html")]
    for text in (*written, capsys.readouterr().err):
        assert found.task in text
        assert tempfile.gettempdir() + "/bertkit-" not in text


def test_an_error_about_a_table_names_the_parameter(workspace: Path, tmp_path: Path) -> None:
    table = frame(text=["a", ["b"]])
    with pytest.raises(BertkitError, match=r'^input, line 2: "text" is \["b"\], not a text') as raised:
        bertkit.embed(workspace / "run", table, text="text", output=tmp_path / "v.npy", progress="quiet")
    assert raised.value.exit_code == BAD_DATA


def test_an_error_about_a_training_table_names_the_parameter(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(
        BertkitError, match=r"^task has no column that looks like text\. Its columns: .*\. Name it: --text COLUMN"
    ):
        bertkit.finetune(frame(a=[1, 2], b=[3, 4]), model=workspace / "run", output=tmp_path / "run", progress="quiet")


def test_temporary_files_are_deleted(
    workspace: Path, reviews: dict[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    bertkit.predict(workspace / "tuned", frame(**reviews), output=tmp_path / "out.csv", progress="quiet")
    bertkit.load(workspace / "tuned").predict(frame(**reviews))
    assert list(temporary.iterdir()) == []


def test_a_table_where_a_list_of_them_is_expected_is_an_error(workspace: Path, tmp_path: Path) -> None:
    table = frame(sentence=["a mill"], label=["0"])
    with pytest.raises(BertkitError, match=r"train is one table, and must be a list of tables"):
        bertkit.finetune("glue:sst2", train=table, model=workspace / "run", output=tmp_path / "run", progress="quiet")


def test_a_table_where_files_are_expected_is_an_error(tmp_path: Path) -> None:
    table = frame(text=["a mill"])
    with pytest.raises(BertkitError, match="files is a table, and must be a list of files: write it into a file first"):
        bertkit.prepare(table, tokenizer=tmp_path, output=tmp_path / "data")
    with pytest.raises(BertkitError, match="files is of the type list; it must be Sequence"):
        bertkit.prepare([table], tokenizer=tmp_path, output=tmp_path / "data")
