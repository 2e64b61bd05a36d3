from __future__ import annotations

import io
import json
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.inference.small_predictions import ROWS, Parrot
from tests.inference.small_predictions import texts as texts

from bertkit.errors import BertkitError
from bertkit.formats.tables import Table
from bertkit.inference import prediction_files
from bertkit.inference.prediction_files import predict_file
from bertkit.machine.interrupts import Interrupted
from bertkit.storage.atomic import write_file
from bertkit.task_types import (
    Columns,
    QuestionAnsweringTask,
    Split,
    TaskFiles,
)
from bertkit.user_tables.input_columns import choose_columns

pytestmark = pytest.mark.usefixtures("without_shape_checks")


@pytest.fixture(autouse=True)
def one_row_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A continuation begins after any row."""
    monkeypatch.setattr("bertkit.inference.prediction_files._ROWS_AT_ONCE", 1)


def answer(model: Parrot, texts: Path, output: Path) -> list[int]:
    reported: list[int] = []
    assert predict_file(model, texts, output, reported.append, overwrite=True) == ROWS
    return reported


def test_an_interrupted_file_continues_where_it_stopped(tmp_path: Path, texts: Path) -> None:
    answer(Parrot(tmp_path / "model"), texts, tmp_path / "whole.jsonl")
    output = tmp_path / "out.jsonl"
    with pytest.raises(Interrupted, match="stopped after 100 rows") as stopped:
        predict_file(Parrot(tmp_path / "model", stop_at=99), texts, output, lambda done: None)
    assert stopped.value.exit_code == 130
    assert not output.exists()
    (partial,) = tmp_path.glob(".bertkit-partial-*")
    with partial.open("a") as file:
        file.write('{"id": "torn')
    model = Parrot(tmp_path / "model")
    reported = answer(model, texts, output)
    assert model.answered == ROWS - 100
    assert (reported[0], reported[-1]) == (100, ROWS)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not list(tmp_path.glob(".bertkit-partial-*"))


def test_a_continuation_begins_where_a_chunk_of_the_model_does(
    tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertkit.inference.prediction_files._ROWS_AT_ONCE", 30)
    output = tmp_path / "out.jsonl"
    with pytest.raises(Interrupted, match="stopped after 120 rows"):  # the part of row 99 was computed whole
        predict_file(Parrot(tmp_path / "model", stop_at=99), texts, output, lambda done: None)
    model = Parrot(tmp_path / "model")
    assert answer(model, texts, output)[0] == 120
    assert model.answered == ROWS - 120
    assert [json.loads(line)["label"] for line in output.read_text().splitlines()] == texts.read_text().splitlines()


def test_other_input_or_another_model_starts_from_the_first_row(tmp_path: Path, texts: Path) -> None:
    output = tmp_path / "out.jsonl"
    with pytest.raises(Interrupted):
        predict_file(Parrot(tmp_path / "model", stop_at=99), texts, output, lambda done: None)
    other = Parrot(tmp_path / "other")
    (tmp_path / "other" / "weights").write_text("13")
    answer(other, texts, output)
    assert other.answered == ROWS
    texts.write_text(texts.read_text().replace("text 0\n", "text zero\n"))
    model = Parrot(tmp_path / "model")
    answer(model, texts, output)
    assert json.loads(output.read_text().splitlines()[0])["label"] == "text zero"


def test_damage_in_the_partial_file_costs_only_the_rows_after_it(tmp_path: Path, texts: Path) -> None:
    answer(Parrot(tmp_path / "model"), texts, tmp_path / "whole.jsonl")
    output = tmp_path / "out.jsonl"
    with pytest.raises(Interrupted):
        predict_file(Parrot(tmp_path / "model", stop_at=20), texts, output, lambda done: None)
    (partial,) = tmp_path.glob(".bertkit-partial-*")
    whole = partial.read_bytes()
    for position in range(0, len(whole), 23):
        changed = bytearray(whole)
        changed[position] ^= 4
        partial.write_bytes(changed)
        model = Parrot(tmp_path / "model")
        answer(model, texts, output)
        lines = whole[:position].count(b"\n")
        assert model.answered == ROWS - max(0, lines - 1)
        assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_an_existing_output_needs_overwrite_and_the_input_is_never_replaced(tmp_path: Path, texts: Path) -> None:
    model = Parrot(tmp_path / "model")
    (tmp_path / "out.csv").write_text("precious")
    with pytest.raises(BertkitError, match=r"out\.csv exists\. .*--overwrite"):
        predict_file(model, texts, tmp_path / "out.csv", lambda done: None)
    assert (tmp_path / "out.csv").read_text() == "precious"
    content = texts.read_bytes()
    (tmp_path / "link.txt").hardlink_to(texts)
    for output in (texts, tmp_path / "link.txt"):
        with pytest.raises(BertkitError, match="is the input"):
            predict_file(model, texts, output, lambda done: None, overwrite=True)
    assert texts.read_bytes() == content
    assert model.answered == 0


def test_a_second_process_is_refused_while_the_first_writes(tmp_path: Path, texts: Path) -> None:
    output = tmp_path / "out.jsonl"

    def start_again(done: int) -> None:
        with pytest.raises(BertkitError, match=r"out\.jsonl is being written by another process"):
            predict_file(Parrot(tmp_path / "model"), texts, output, lambda done: None)

    assert predict_file(Parrot(tmp_path / "model"), texts, output, start_again) == ROWS


@pytest.mark.parametrize(
    ("output", "message"),
    [("out.xls", r'no format named "\.xls"'), ("nowhere/out.csv", "the folder .*nowhere does not exist: create it")],
)
def test_an_output_that_cannot_be_written_is_an_error_at_once(
    tmp_path: Path, texts: Path, output: str, message: str
) -> None:
    model = Parrot(tmp_path / "model")
    with pytest.raises(BertkitError, match=message):
        predict_file(model, texts, tmp_path / output, lambda done: None)
    assert model.answered == 0


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path, texts: Path) -> None:
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    model = Parrot(tmp_path / "model")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, old[1]))
        with pytest.raises(BertkitError, match=r"cannot write .*out\.csv: File too large"):
            predict_file(model, texts, tmp_path / "out.csv", lambda done: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)
    assert predict_file(model, texts, tmp_path / "out.csv", lambda done: None) == ROWS


def test_repeated_ids_are_refused_for_json_before_anything_is_predicted(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,text\n3,one\n7,two\n3,three\n")
    parrot = Parrot(tmp_path / "model")
    split = Split(files=("in.csv",), columns=Columns(first="text", id="id"))
    parrot.__dict__["task"] = replace(parrot.task, files=TaskFiles(splits={"train": split}))
    with pytest.raises(BertkitError, match=r'in\.csv: the id "3" occurs twice, .* write \.jsonl'):
        predict_file(parrot, tmp_path / "in.csv", tmp_path / "out.json", lambda done: None)
    assert parrot.answered == 0
    assert not list(tmp_path.glob("*.json")) + list(tmp_path.glob(".bertkit-partial*"))
    assert predict_file(parrot, tmp_path / "in.csv", tmp_path / "out.jsonl", lambda done: None) == 3


def test_repeated_ids_from_stdin_are_refused_for_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, lines may bring ids of their own, and are seen one by one."""
    questions = [{"id": name, "question": "who", "context": name} for name in ("a", "b", "a")]
    parrot = Parrot(tmp_path / "model")
    task = QuestionAnsweringTask(name="parrot")
    monkeypatch.setattr(task.__class__, "describe", lambda self, example, prediction: {"id": example.id, "answer": ""})
    monkeypatch.setattr(parrot, "stream", lambda examples, batch_size: iter(examples))
    parrot.__dict__["task"] = task
    lines = "".join(json.dumps(each) + "\n" for each in questions)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    with pytest.raises(BertkitError, match=r'-: the id "a" occurs twice, .* write \.jsonl'):
        predict_file(parrot, Path("-"), tmp_path / "out.json", lambda done: None)
    assert not (tmp_path / "out.json").exists()


def test_a_process_that_dies_between_its_two_files_is_continued(
    tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that the user named comes last, so it is the mark that everything is there."""
    output, odds = tmp_path / "out.jsonl", tmp_path / "out.odds.json"

    def write_no_output(path: Path, fill: Callable[[Path], object]) -> None:
        if path == output:
            raise MemoryError
        write_file(path, fill)

    monkeypatch.setattr(prediction_files, "_further_files", lambda pipeline, output: {"odds": odds})
    monkeypatch.setattr(prediction_files, "write_object", lambda rows, path, field: path.write_text(field))
    with monkeypatch.context() as changed, pytest.raises(MemoryError):
        changed.setattr(prediction_files, "write_file", write_no_output)
        predict_file(Parrot(tmp_path / "model"), texts, output, lambda done: None)
    assert (odds.exists(), output.exists()) == (True, False)
    assert predict_file(Parrot(tmp_path / "model"), texts, output, lambda done: None) == ROWS
    with pytest.raises(BertkitError, match="exists"):
        predict_file(Parrot(tmp_path / "model"), texts, output, lambda done: None)


def test_other_columns_start_from_the_first_row(tmp_path: Path) -> None:
    table = tmp_path / "in.csv"
    table.write_text("text,other\n" + "".join(f"a {row},b {row}\n" for row in range(ROWS)))
    output = tmp_path / "out.jsonl"
    with pytest.raises(Interrupted):
        predict_file(Parrot(tmp_path / "model", stop_at=77), table, output, lambda done: None)
    parrot = Parrot(tmp_path / "model")
    parrot.task, _ = choose_columns(parrot.task, table, text="other")
    predict_file(parrot, table, output, lambda done: None)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [(each["label"], each["text"]) for each in rows] == [(f"b {row}", f"a {row}") for row in range(ROWS)]


def test_the_columns_of_the_input_are_kept_after_an_interruption(tmp_path: Path) -> None:
    table = tmp_path / "in.jsonl"
    table.write_text("".join(json.dumps({"text": f"a {row}", "n": row}) + "\n" for row in range(ROWS)))
    output = tmp_path / "out.jsonl"
    with pytest.raises(Interrupted):
        predict_file(Parrot(tmp_path / "model", stop_at=77), table, output, lambda done: None)
    predict_file(Parrot(tmp_path / "model"), table, output, lambda done: None)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [(each["label"], each["n"]) for each in rows] == [(f"a {row}", row) for row in range(ROWS)]


def test_a_column_may_have_the_name_of_the_checksum(tmp_path: Path) -> None:
    table, output = tmp_path / "in.csv", tmp_path / "out.csv"
    table.write_text("text,crc32\na,7\n")
    predict_file(Parrot(tmp_path / "model"), table, output, lambda done: None)
    (row,) = Table(output).rows("label", "crc32")
    assert row.cells == ["a", "7"]


KEPT = {"text": "a", "n": 3, "share": 0.5, "seen": True, "words": ["x", "y"], "more": {"k": [1]}, "none": None}


@pytest.mark.parametrize("source", [".jsonl", ".parquet"])
def test_kept_values_have_the_types_of_the_input(tmp_path: Path, source: str) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = tmp_path / f"in{source}"
    if source == ".jsonl":
        table.write_text(json.dumps(KEPT) + "\n")
    else:
        parquet.write_table(arrow.Table.from_pylist([KEPT]), table)

    def predict(suffix: str) -> Path:
        output = tmp_path / f"out{suffix}"
        predict_file(Parrot(tmp_path / "model"), table, output, lambda done: None)
        return output

    row = json.loads(predict(".jsonl").read_text())
    assert {name: row[name] for name in KEPT} == KEPT
    (row,) = parquet.read_table(predict(".parquet")).to_pylist()
    assert {name: row[name] for name in KEPT} == {**KEPT, "more": '{"k": [1]}'}
    (row,) = Table(predict(".csv")).rows(*KEPT)
    assert row.cells == ["a", "3", "0.5", "true", '["x", "y"]', '{"k": [1]}', ""]


def test_a_column_of_several_types_is_text_in_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    table = tmp_path / "in.jsonl"
    rows = [
        {"text": "a", "mixed": 1, "large": 2**70, "number": 1, "id2": 2**60 + 1},
        {"text": "b", "mixed": "x", "number": 1.5, "id2": 3},
    ]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    predict_file(Parrot(tmp_path / "model"), table, tmp_path / "out.parquet", lambda done: None)
    found = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert [(row["mixed"], row["large"], row["number"]) for row in found] == [("1", str(2**70), 1.0), ("x", None, 1.5)]
    assert [row["id2"] for row in found] == [2**60 + 1, 3]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_predictions_of_predictions_keep_every_column(tmp_path: Path, suffix: str) -> None:
    """The first predictions have ``input_label`` already, beside the ``label`` that becomes one."""
    table, output = tmp_path / "in.csv", tmp_path / f"out{suffix}"
    table.write_text("text,label,input_label\na,old,gold\n")
    predict_file(Parrot(tmp_path / "model"), table, output, lambda done: None)
    found = Table(output)
    (row,) = found.rows("label", "text", "input_label", "input_input_label")
    assert row.cells == ["a", "a", "gold", "old"]
