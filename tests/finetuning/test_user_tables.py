"""Fine-tuning on a user's own table and prediction: several labels, class weights, long texts, messages."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.opened_files import count_opens

import bertkit
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.cli import app
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.model import Model
from bertkit.text.wordpiece import train

pytestmark = pytest.mark.usefixtures("without_shape_checks")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of a small encoder with random weights."""
    tokenizer = train(["the old mill by the river was sold to a man from the city"] * 7, vocab_size=67)
    shape = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=6,
        num_layers=1,
        num_heads=1,
        intermediate_size=7,
        max_positions=141,
        initializer_range=0.5,
    )
    folder = tmp_path_factory.mktemp("source") / "model"
    save_model(folder, Model(Bert(shape), {}), tokenizer, metadata={})
    return folder


def write(path: Path, length: int = 5) -> Path:
    """39 texts with several labels."""
    tags = ["mill;river", "river", "mill", "city;mill", "city"]
    rows = [(row, " ".join(["the mill", str(row), *["river"] * length]), tags[row % 5]) for row in range(39)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "text", "tags"), *rows])
    return path


@pytest.fixture
def tuned(source: Path, tmp_path: Path) -> Path:
    options: dict[str, Any] = {"model": source, "label": "tags", "batch_size": 7, "class_weights": "balanced"}
    bertkit.finetune(write(tmp_path / "t.csv"), output=tmp_path / "run", epochs=2, progress="quiet", **options)
    return tmp_path / "run"


def test_thresholds_of_labels_are_set_on_dev_and_kept_with_the_model(tuned: Path) -> None:
    task = ModelFolder.open(tuned).metadata["task"]
    assert task["type"] == "multi_label"
    assert set(task["thresholds"]) <= {"city", "mill", "river"}
    assert task["thresholds"]
    assert set(task["class_weights"]) == {"city", "mill", "river"}
    results = json.loads((tuned / "results.json").read_text())
    assert _scores(tuned) == pytest.approx(results["best"]["scores"])
    model = bertkit.load(tuned)
    prediction = model.classify("the mill")
    expected = [name for name, score in prediction.scores.items() if score >= task["thresholds"].get(name, 0.5)]
    assert list(prediction.label) == expected  # type: ignore[arg-type]
    predicted = {str(each.label) for each in model.predict([each.first for each in model.task.examples("dev")])}
    warned = any("for every dev example" in each for each in results["warnings"])
    assert warned == (len(predicted) == 1)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".jsonl", ".parquet"])
def test_several_labels_are_one_cell(suffix: str, tuned: Path, tmp_path: Path) -> None:
    assert bertkit.predict(tuned, tmp_path / "t.csv", output=tmp_path / f"out{suffix}", progress="quiet") == 39
    if suffix == ".csv":
        rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
        assert [row["id"] for row in rows] == [str(number) for number in range(39)], "ids are the user's"
        labels = [set(row["label"].split(";")) for row in rows if row["label"] != "[]"]
        assert all(each <= {"city", "mill", "river"} for each in labels)
        (tmp_path / "again.csv").write_text("id,text,tags\n" + "".join(f'{r["id"]},a,"{r["label"]}"\n' for r in rows))
        predicted = [list(prediction.label) for prediction in _predictions(tuned, tmp_path / "t.csv")]
        read = [
            list(each.label)
            for each in bertkit.load(tuned).task.with_files(dev=[tmp_path / "again.csv"]).examples("dev")
        ]
        assert read == predicted, "written labels are read back"


def _scores(run: Path, **options: Any) -> dict[str, float]:
    evaluation = bertkit.evaluate(run, progress="quiet", **options)
    return {name: score.value for name, score in evaluation.scores.items()}


def _predictions(run: Path, table: Path) -> list[Any]:
    model = bertkit.load(run)
    return list(model.stream(model.task.reader.read(table)))


def test_truncation_is_reported_in_training_and_prediction(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = str(write(tmp_path / "t.csv", length=200))
    words = ["--model", str(source), "--label", "tags", "--epochs", "1", "--progress", "plain"]
    assert app.run(["finetune", table, *words, "-o", str(tmp_path / "cut")]) == 0
    messages = capsys.readouterr().err
    assert "training examples were cut to 128 tokens; " in messages
    assert "% of the tokens are lost. Read them whole: --set task.stride=64" in messages
    assert app.run(["evaluate", str(tmp_path / "cut"), "--progress", "plain"]) == 0
    assert "examples were cut to 128 tokens, as in training. Read them whole: " in capsys.readouterr().err
    assert (
        app.run(["predict", str(tmp_path / "cut"), table, "-o", str(tmp_path / "o.jsonl"), "--progress", "plain"]) == 0
    )
    assert "39 examples were cut to 128 tokens" in capsys.readouterr().err
    records = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert all(record["num_truncated"] > 70 for record in records)
    settings = ["--set", "task.stride=64"]
    assert app.run(["finetune", table, *words, "-o", str(tmp_path / "whole"), *settings]) == 0
    assert "cut to" not in capsys.readouterr().err
    assert bertkit.load(tmp_path / "whole").classify("river " * 300).num_truncated == 0


def test_a_weight_of_an_unknown_class_is_an_error_before_anything_is_written(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = str(write(tmp_path / "t.csv"))
    words = ["finetune", table, "--model", str(source), "--label", "tags", "-o", str(tmp_path / "run"), "--quiet"]
    assert app.run([*words, "--class-weights", "rivr=2"]) == 2
    assert 'no class "rivr" to weigh. files:t.csv knows: city, mill, river. Did you mean "river"?' in _error(capsys)
    assert app.run([*words, "--set", "task.class_weights.rivr=2"]) == 2
    assert _error(capsys).startswith('error: --set: no class "rivr" to weigh.')
    assert not (tmp_path / "run").exists()


def _error(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err.splitlines()[-1]


def test_a_folder_is_a_task_and_input(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "films"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        write(folder / f"{split}.csv")
    words = ["finetune", str(folder), "--model", str(source), "--label", "tags", "--epochs", "1", "--quiet", "--json"]
    assert app.run([*words, "-o", str(tmp_path / "run")]) == 0
    scores = json.loads(capsys.readouterr().out)["best"]["scores"]
    assert bertkit.load(tmp_path / "run").task.name == "files:films"
    assert _scores(tmp_path / "run", data=folder) == pytest.approx(scores)
    assert _scores(tmp_path / "run", split="test") == pytest.approx(scores)
    assert app.run(["evaluate", str(tmp_path / "run"), "--data", str(tmp_path / "nothing"), "--quiet"]) == 2
    assert "no file or folder at" in _error(capsys)


def test_a_saved_dataset_can_be_predicted(tuned: Path, tmp_path: Path) -> None:
    table = pa.table({"text": ["the mill", "the river", "a city"], "id": ["x", "y", "z"]})
    (tmp_path / "saved").mkdir()
    sink = pa.OSFile(str(tmp_path / "saved" / "data.arrow"), "wb")
    with sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    (tmp_path / "saved" / "dataset_info.json").write_text("{}")
    assert bertkit.predict(tuned, tmp_path / "saved", output=tmp_path / "out.jsonl", progress="quiet") == 3
    assert [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == ["x", "y", "z"]


def test_a_table_is_opened_and_read_once_and_hashed_once(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = write(tmp_path / "t.csv")
    opened = count_opens(table, monkeypatch)
    bertkit.finetune(table, model=source, label="tags", output=tmp_path / "run", epochs=1, progress="quiet")
    assert len(opened) <= 2, "one reading, from which dev is held out, and one hash for the record"
