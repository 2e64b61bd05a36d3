"""Bad tables: read right, refused with the line, or left out and counted; nothing is dropped silently."""

from __future__ import annotations

import csv
import json
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertkit.cli import app
from bertkit.errors import BAD_DATA, WRONG_USAGE
from bertkit.formats.table_formats import Row
from bertkit.formats.tables import Table
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.prediction_files import predict_file
from bertkit.inference.runtime import Runtime
from bertkit.task_types import Prediction, TextClassificationTask, TextExample
from bertkit.user_tables.guess import guess

HEADER = "id,text,label\n"
GOOD = [f"{row},film number {row},{('bad', 'good')[row % 2]}\n" for row in range(30)]


def table(*, line: int = 0, row: str = "", header: str = HEADER, rows: list[str] | None = None) -> bytes:
    """Thirty good rows, one of which is ``row``; lines count from 1, the header's."""
    rows = list(GOOD if rows is None else rows)
    if line:
        rows[line - 2] = row
    return (header + "".join(rows)).encode()


def labelled(*labels: str) -> bytes:
    return table(rows=[f"{row},film number {row},{label}\n" for row, label in enumerate(labels)])


REFUSED: dict[str, tuple[bytes, str]] = {
    # row 29: labels
    "a typo": (table(line=9, row="7,a film,godo\n"), 'line 9: label "godo" occurs once; "good" occurs 14 times'),
    "another case": (
        table(line=9, row="7,a film,Good\n"),
        'line 9: 2 spellings of one label ("good" 14',
    ),
    "full width": (
        table(line=9, row="7,a film,ｇｏｏｄ\n"),
        'line 9: 2 spellings of one label ("good" 14',
    ),
    "another encoding of a letter": (
        labelled(*["caf\u00e9", "bar"] * 9, unicodedata.normalize("NFD", "caf\u00e9")),
        'line 20: 2 spellings of one label ("café" 9 times',
    ),
    "an invisible letter": (
        table(line=9, row="7,a film,good\u200b\n"),
        'line 9: 2 spellings of one label ("good" 14',
    ),
    "a number written in two ways": (
        labelled(*"010101", "1.0"),
        'line 8: 2 spellings of one label ("1" 3 times',
    ),
    "one class": (labelled("good", "good", "good"), 'every row has the label "good". There must be two labels'),
    "no label": (labelled("", "", ""), 'no row has a label in column "label"'),
    "a text for a label": (
        table(rows=[f"{row},film {row},a label {chr(97 + row % 26) * (row // 26 + 1)}\n" for row in range(99)]),
        'column "label" has 99 different values in 99 rows',
    ),
    "a number that is none": (
        table(rows=[f"{row},film {row},{row / 7}\n" for row in range(60)] + ["60,film,nan\n"]),
        'line 62: "nan" is not a number',
    ),
    # row 32: the table itself
    "a million letters": (table(line=5, row=f"3,{'film ' * 250_000},bad\n"), "line 5: a cell of more than 1,000,000"),
    "a short row": (table(line=5, row="3,film number 3\n"), "line 5: 2 cells, but 3 columns (id, text, label)"),
    "a long row": (table(line=5, row="3,film, number 3,bad\n"), "line 5: 4 cells, but 3 columns"),
    "an unclosed quote": (table(line=5, row='3,"film number 3,bad\n'), "line 5: a quote is opened here and never"),
    "a quote inside": (table(line=5, row='3,"film" number 3,bad\n'), "line 5: text follows a closing quote"),
    "a lone carriage return": (table(line=5, row="3,film\rnumber 3,bad\n"), "line 5: a carriage return inside"),
    "NUL": (table(line=5, row="3,film \0,bad\n"), "line 5: a NUL character"),
    "a row of NUL": (table(line=5, row="\0" * 99 + "\n"), "line 5: a NUL character"),
    "latin-1": (table().replace(b"number 3,", b"caf\xe9,"), "line 5: byte 11 of the line is not UTF-8"),
    "UTF-16": (table().decode().encode("utf-16"), "t.csv is in UTF-16. Save it as UTF-8"),
    "a million columns": (table(line=5, row="3" + "," * 1_000_000 + "\n"), "line 5: 1,000,001 cells, but 3 columns"),
    "names again": (table(line=5, row=HEADER), "line 5: the line of column names again"),
    "one name twice": (table(header="text,text,label\n"), 'more than one column "text"'),
    "names and no rows": (table(rows=[]), "has a line of column names and no rows"),
    "nothing": (b"", "is empty"),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path()


def finetune(path: Path, *words: str) -> int:
    """Fine-tune an empty model folder: what is wrong with a table is reported before the model is read."""
    model = Path("model")
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text("{}")
    return app.run(["finetune", str(path), "--model", str(model), "-o", "run", *words])


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("fault", REFUSED)
def test_it_is_refused_in_one_line_before_anything_is_made(
    fault: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, message = REFUSED[fault]
    (here / "t.csv").write_bytes(data)
    assert finetune(here / "t.csv") == BAD_DATA
    message_line = last_line(capsys)
    assert message_line.startswith("error: t.csv")
    assert message in message_line
    assert sorted(path.name for path in here.iterdir()) == ["model", "t.csv"]


@pytest.mark.parametrize("fault", [fault for fault in REFUSED if "line 5" in REFUSED[fault][1]])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_dev_and_test_are_looked_at_as_well(
    fault: str, split: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "train.csv").write_bytes(table())
    (here / "other.csv").write_bytes(REFUSED[fault][0])
    assert finetune(here / "train.csv", f"--{split}", "other.csv") == BAD_DATA
    assert "other.csv, line 5: " in last_line(capsys)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("godo", 'unknown label "godo". files:train.csv knows: bad, good. Did you mean "good"?'),
        ("Good", 'unknown label "Good". files:train.csv knows: bad, good. Did you mean "good"?'),
        ("neutral", 'unknown label "neutral". files:train.csv knows: bad, good.'),
        ("1", 'unknown label "1". files:train.csv knows: bad, good.'),
    ],
)
def test_a_label_that_train_has_not_is_refused(
    label: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "train.csv").write_bytes(table())
    (here / "dev.csv").write_bytes(table(line=7, row=f"5,a film,{label}\n"))
    assert finetune(here / "train.csv", "--dev", "dev.csv") == BAD_DATA
    assert last_line(capsys) == f"error: dev.csv, line 7: {message}"


@pytest.mark.parametrize("mark", ["^", ":", "~", " "])
def test_an_unknown_delimiter_is_not_taken_for_one_column_of_text(
    mark: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "t.csv").write_bytes(table().replace(b",", mark.encode()))
    assert finetune(here / "t.csv") == WRONG_USAGE
    said = last_line(capsys)
    assert said == (
        f"error: t.csv has texts and no labels: its columns are id{mark}text{mark}label. Add a column of labels; a "
        "comma, a semicolon, a tab or | separates columns."
    )
    assert finetune(here / "t.csv", "--text", "text", "--label", "label") == WRONG_USAGE
    assert 'has no column "text"' in last_line(capsys)


def test_a_file_whose_suffix_lies_is_read_by_its_content(here: Path) -> None:
    (here / "t.csv").write_bytes(table().replace(b",", b"\t"))
    assert len(list(guess(here / "t.csv").task.reader.rows("train"))) == 30


AWKWARD = ['"quoted"', "two\nlines", "a,b;c\td|e", "\ufeffmark", "=1+1", "\u2028 and \x85", "  spaces  ", "é", "''", ""]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.parquet"])
def test_awkward_texts_come_back_to_the_letter(name: str, here: Path) -> None:
    rows = [{"id": str(row), "text": text, "label": "ab"[row % 2]} for row, text in enumerate(AWKWARD * 4)]
    if name == "t.jsonl":
        (here / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif name == "t.parquet":
        pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(rows), here / name)
    else:
        with (here / name).open("w", newline="", encoding="utf-8-sig") as file:
            writer = csv.DictWriter(file, rows[0], delimiter=",\t"[name == "t.tsv"], quoting=csv.QUOTE_ALL)
            writer.writeheader()
            writer.writerows(rows)
    task = guess(here / name, text="text", label="label").task
    assert [(each.id, each.first, each.label) for each in task.reader.rows("train")] == [
        tuple(row.values()) for row in rows
    ]
    assert "4 examples of train have an empty text, and are kept" in task.reader.notes()


def test_rows_that_are_left_out_or_unusual_are_counted(here: Path) -> None:
    odd = ["7,another film,\n", "7,film number 3,good\n", "8,film number 3,bad\n", "8, ,good\n"]
    (here / "train.csv").write_bytes(table(rows=[*GOOD, *odd]))
    (here / "dev.csv").write_bytes(table(rows=["1,Film  NUMBER 4,good\n", "1,new,good\n", "2,,good\n", "3,x,\n"]))
    task = guess(here / "train.csv", dev=here / "dev.csv").task
    notes = task.reader.notes()
    assert notes == [
        "1 row of train has no label and is left out",
        "1 example of train has an empty text, and is kept",
        '2 ids of train occur more than once (the first is "7"), 1 of them with different labels; every row counts',
        "1 row of dev has no label and is left out",
        "1 example of dev has an empty text, and is kept",
        'every example of dev has the label "good": there is nothing to learn',
        '1 id of dev occurs more than once (the first is "1"); every row counts',
        "2 of 3 dev examples have a text that is also in train, so the scores are too high",
        '1 text of train occurs with different labels (the first is "film number 3")',
        "1 row of train repeats the text and the label of another",
        "dev has no example of bad: how well it is recognised is not measured",
    ]
    assert (len(task.examples("train")), len(task.examples("dev"))) == (33, 3), "nothing else is dropped"


def test_what_a_person_should_know_takes_one_reading(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("train.csv", "dev.csv"):
        (here / name).write_bytes(table())
    task = guess(here / "train.csv", dev=here / "dev.csv").task
    read: list[str] = []
    rows = Table.rows

    def note(table: Table, *columns: str) -> Iterator[Row]:
        read.append(table.path.name)
        return rows(table, *columns)

    monkeypatch.setattr(Table, "rows", note)
    task.reader.notes()
    assert read == ["train.csv", "dev.csv"]


def test_ten_thousand_classes(here: Path) -> None:
    labels = [f"class {'abcdefghij'[row % 10]}{row // 10}" for row in range(10_000)] * 2
    (here / "t.csv").write_bytes(labelled(*labels))
    begin = time.process_time()
    task = guess(here / "t.csv").task
    assert len(task.labels) == 10_000
    assert time.process_time() - begin < 10
    (here / "dev.csv").write_bytes(labelled("class a1", "class k7"))
    with pytest.raises(Exception, match=r'dev.csv, line 3: unknown label "class k7"') as caught:
        guess(here / "t.csv", dev=here / "dev.csv")
    assert len(str(caught.value)) < 400, "not all of them are listed"


class Echo(Pipeline):
    """Answers a text with itself."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.folders = folder, (folder,)
        self.__dict__["runtime"] = Runtime("float32", None)
        self.__dict__["task"] = TextClassificationTask(name="echo", metric="accuracy", labels=("a", "b"))

    def stream(self, examples: Any, *, batch_size: int = 64, task: object = None) -> Iterator[Prediction]:
        for example in examples:
            assert isinstance(example, TextExample)
            yield Prediction(example.first, {"a": 0.75, "b": 0.25})


FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "plain", "-", "=", "'=1"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_answers_that_a_spreadsheet_would_run_are_harmless(suffix: str, here: Path) -> None:
    (here / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in FORMULAS))
    assert predict_file(Echo(here / "model"), here / "in.jsonl", here / f"out{suffix}", lambda done: None) == 9
    text = (here / f"out{suffix}").read_text(encoding="utf-8")
    if suffix == ".jsonl":
        assert [json.loads(line)["label"] for line in text.splitlines()] == FORMULAS, "JSON is left as it is"
        return
    rows = list(csv.DictReader(text.splitlines(), delimiter=",\t"[suffix == ".tsv"]))
    unmarked = [row["label"] for row in rows if row["label"].startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert unmarked == ["+1", "-1"], "a number is no formula"
    assert [row["label"].removeprefix("'") for row in rows] == [each.removeprefix("'") for each in FORMULAS]


def test_repeated_ids_of_new_input_are_all_answered_in_order(here: Path) -> None:
    (here / "t.csv").write_bytes(table())
    model = Echo(here / "model")
    model.__dict__["task"] = guess(here / "t.csv").task
    (here / "in.csv").write_text("id,text\n7,one\n7,two\n,three\n")
    predict_file(model, here / "in.csv", here / "out.jsonl", lambda done: None)
    assert model.task.reader.inspect_input(here / "in.csv") == (
        3,
        ['1 id of in.csv occurs more than once (the first is "7"); every row counts'],
    )
    records = [json.loads(line) for line in (here / "out.jsonl").read_text().splitlines()]
    assert [(record["id"], record["label"]) for record in records] == [("7", "one"), ("7", "two"), ("", "three")]


def test_a_file_to_be_scored_needs_no_ids(here: Path) -> None:
    (here / "t.csv").write_bytes(table())
    (here / "dev.csv").write_text("text,label\none,good\ntwo,bad\n")
    examples = guess(here / "t.csv").task.with_files(dev=["dev.csv"]).examples("dev")
    assert [(each.id, each.label) for each in examples] == [("2", "good"), ("3", "bad")]


@pytest.mark.parametrize("fault", ["a short row", "an unclosed quote", "NUL", "latin-1"])
def test_bad_input_to_answer_is_refused_with_its_line(fault: str, here: Path) -> None:
    (here / "t.csv").write_bytes(table())
    model = Echo(here / "model")
    model.__dict__["task"] = guess(here / "t.csv").task
    (here / "in.csv").write_bytes(REFUSED[fault][0])
    with pytest.raises(Exception, match=r"^in.csv, line 5: ") as caught:
        predict_file(model, here / "in.csv", here / "out.csv", lambda done: None)
    assert getattr(caught.value, "exit_code", None) == BAD_DATA
    assert not (here / "out.csv").exists()
