"""Predictions as CSV, TSV, JSON, Parquet and text."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.inference.small_predictions import Parrot
from tests.inference.small_predictions import texts as texts

from bertkit.errors import BertkitError
from bertkit.inference.prediction_files import predict_file
from bertkit.inference.prediction_formats import find_writer
from bertkit.task_types import (
    AnswerColumns,
    Choice,
    Columns,
    MultipleChoiceTask,
    Prediction,
    RegressionTask,
    Split,
    TaggingTask,
    TagPrediction,
    TaskFiles,
)


def test_cells_that_a_spreadsheet_would_run_get_an_apostrophe(tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("=1+1\n@x\nplain\n")
    predict_file(Parrot(tmp_path / "model"), texts, tmp_path / "out.csv", lambda done: None)
    labels = [line.split(",")[1] for line in (tmp_path / "out.csv").read_text().splitlines()]
    assert labels == ["label", "'=1+1", "'@x", "plain"]
    predict_file(Parrot(tmp_path / "model"), texts, tmp_path / "out.txt", lambda done: None)
    assert (tmp_path / "out.txt").read_text() == "=1+1\n@x\nplain\n"


class Tagger(Parrot):
    """Takes every word for an entity."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.__dict__["task"] = TaggingTask(name="tagger", labels=("B-X", "O"))

    def stream(self, examples: Iterable[Any], *, batch_size: int = 64, task: object = None) -> Iterator[Any]:
        for example in examples:
            yield TagPrediction(("B-X",) * len(example.words), (0.5,) * len(example.words), ())


class Chooser(Parrot):
    """Takes the second choice."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.__dict__["task"] = MultipleChoiceTask(name="chooser", choices=("A", "B"))

    def stream(self, examples: Iterable[Any], *, batch_size: int = 64, task: object = None) -> Iterator[Any]:
        for example in examples:
            yield Choice(1, example.choices[1], (0.25, 0.75))


class Counter(Parrot):
    """Answers a text with its length."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.__dict__["task"] = RegressionTask(name="counter", metric="pearson")

    def stream(self, examples: Iterable[Any], *, batch_size: int = 64, task: object = None) -> Iterator[Any]:
        for example in examples:
            yield Prediction(float(len(example.first)))


@pytest.mark.parametrize(
    ("model", "row", "expected"),
    [
        (Chooser, "text,A,B\nwho?,they,we\n", "id,label,choice,probability,text,A,B\n2,1,we,0.75,who?,they,we\n"),
        (Counter, "text\nseven\n", "id,label,text\n2,5.0,seven\n"),
        (Counter, "label,text\n=7,seven\n", "id,label,input_label,text\n2,5.0,'=7,seven\n"),
    ],
)
def test_the_columns_of_a_table_depend_on_the_type_of_the_task(
    tmp_path: Path, model: type[Parrot], row: str, expected: str
) -> None:
    (tmp_path / "in.csv").write_text(row)
    parrot = model(tmp_path / "model")
    split = Split(files=("in.csv",), columns=Columns(first="text"))
    parrot.__dict__["task"] = replace(parrot.task, files=TaskFiles(splits={"train": split}))
    predict_file(parrot, tmp_path / "in.csv", tmp_path / "out.csv", lambda done: None)
    assert (tmp_path / "out.csv").read_text() == expected


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [
        (".csv", "id,words,tags\n1,two wide,B-X B-X\n"),
        (".tsv", "id\twords\ttags\n1\ttwo wide\tB-X B-X\n"),
        (".txt", "B-X B-X\n"),
        (".json", '{\n "1": ["B-X", "B-X"]\n}\n'),
    ],
)
def test_tags_are_one_cell_with_spaces_between(tmp_path: Path, suffix: str, expected: str) -> None:
    (tmp_path / "in.txt").write_text("two wide\n")
    output = tmp_path / f"out{suffix}"
    predict_file(Tagger(tmp_path / "model"), tmp_path / "in.txt", output, lambda done: None)
    assert output.read_text() == expected


TAGGED_INPUTS = {
    ".jsonl": '{"id": "7", "tokens": ["two", "wide"], "entities": [1]}\n',
    ".csv": "id,text,author\n7,two wide,me\n",
}


def test_the_columns_of_a_table_with_a_sentence_per_row_are_kept(tmp_path: Path) -> None:
    def predict(input: str, suffix: str) -> str:
        (tmp_path / f"in{input}").write_text(TAGGED_INPUTS[input])
        output = tmp_path / f"out{suffix}"
        predict_file(Tagger(tmp_path / "model"), tmp_path / f"in{input}", output, lambda done: None, overwrite=True)
        return output.read_text()

    assert predict(".csv", ".csv") == "id,words,tags,text,author\n7,two wide,B-X B-X,two wide,me\n"
    record = json.loads(predict(".jsonl", ".jsonl"))
    assert (record["entities"], record["input_entities"], record["tokens"]) == ([], [1], ["two", "wide"])


def test_a_table_with_a_word_per_row_has_no_columns_to_keep(tmp_path: Path) -> None:
    table, output = tmp_path / "in.csv", tmp_path / "out.csv"
    table.write_text("sentence_id,word,author\n1,two,me\n1,wide,me\n")
    predict_file(Tagger(tmp_path / "model"), table, output, lambda done: None)
    assert output.read_text() == "id,words,tags\n1,two wide,B-X B-X\n"


def test_half_of_a_character_in_an_id_does_not_stop_the_writing_of_parquet(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = AnswerColumns(columns=("id", "label"))
    output = tmp_path / "out.parquet"
    find_writer(output)([{"id": "a\ud83d", "label": "x"}], output, columns)
    assert parquet.read_table(output).to_pylist() == [{"id": "a\\ud83d", "label": "x"}]


def test_a_missing_pyarrow_is_an_error_before_anything_is_predicted(
    tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    parrot = Parrot(tmp_path / "model")
    with pytest.raises(BertkitError, match="needs pyarrow"):
        predict_file(parrot, texts, tmp_path / "out.parquet", lambda done: None)
    assert parrot.answered == 0


@pytest.mark.parametrize(
    "text", ["=1", " =1", "\ufeff+1", "\u00a0@x", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201", "\n=1", "\t1", "\r1"]
)
def test_every_start_of_a_formula_gets_an_apostrophe(tmp_path: Path, text: str) -> None:
    columns = MultipleChoiceTask(name="chooser", choices=("A", "B")).answer_columns
    find_writer(Path("out.csv"))([dict.fromkeys(columns.columns, text)], tmp_path / "out.csv", columns)
    with (tmp_path / "out.csv").open(newline="") as file:
        assert list(csv.reader(file))[1] == [f"'{text}"] * len(columns.columns)


@pytest.mark.parametrize("text", ["-3", "+3.25", "-3,2", "-1e-5", "7", "-.5", "-1,234.50"])
def test_a_number_is_no_formula(tmp_path: Path, text: str) -> None:
    columns = AnswerColumns(columns=("id", "label"))
    find_writer(Path("out.csv"))([{"id": text, "label": f"{text}+1"}], tmp_path / "out.csv", columns)
    with (tmp_path / "out.csv").open(newline="") as file:
        sign = "" if text == "7" else "'"
        assert list(csv.reader(file))[1] == [text, f"{sign}{text}+1"]


def test_a_lone_carriage_return_stays_in_its_cell(tmp_path: Path) -> None:
    columns = MultipleChoiceTask(name="chooser", choices=("A", "B")).answer_columns
    rows = [dict.fromkeys(columns.columns, "a\rb"), dict.fromkeys(columns.columns, "plain")]
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        path = tmp_path / f"out{suffix}"
        find_writer(path)(rows, path, columns)
        with path.open(newline="") as file:
            assert list(csv.reader(file, delimiter=delimiter))[1:] == [list(row.values()) for row in rows]
        assert b"\r\n" not in path.read_bytes()


def test_the_name_of_a_kept_column_is_no_formula(tmp_path: Path) -> None:
    columns = AnswerColumns(columns=("id", "label"), kept=("=1+1", "@name"))
    find_writer(Path("out.csv"))([{"id": "1", "label": "a", "=1+1": "b", "@name": "c"}], tmp_path / "out.csv", columns)
    with (tmp_path / "out.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["id", "label", "'=1+1", "'@name"], ["1", "a", "b", "c"]]
