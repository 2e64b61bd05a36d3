"""A user's own table: guesses, messages about them, and refused tables."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from tests.task_types.small_tables import fails, reviews, sentence, write_csv
from tests.task_types.small_tables import here as here

from bertkit.errors import BAD_DATA, WRONG_USAGE, BertkitError
from bertkit.evaluation.evaluate import read_split
from bertkit.task_types import TextClassificationTask, TextExample, from_record
from bertkit.user_tables.guess import guess


def test_the_guess_is_described_in_a_sentence(here: Path) -> None:
    found = guess(write_csv(here / "reviews.csv", reviews(40)))
    assert found.sentence == "text = review, label = label (2 classes: negative 14, positive 26), id = id"
    assert isinstance(found.task, TextClassificationTask)
    assert found.task.labels == ("negative", "positive")
    assert not found.task.pair
    assert (found.task.metric, found.task.also) == ("accuracy", ("macro_f1", "matthews"))


def test_one_class_is_refused(here: Path) -> None:
    rows = [(str(row), sentence(row), "good") for row in range(9)]
    fails('every row has the label "good". There must be two labels or more', BAD_DATA, write_csv(here / "r.csv", rows))


def test_no_label_at_all_is_refused(here: Path) -> None:
    rows = [(str(row), sentence(row), "") for row in range(9)]
    fails('no row has a label in column "label"', BAD_DATA, write_csv(here / "r.csv", rows))


def test_columns_that_are_not_read_are_named(here: Path) -> None:
    path = here / "t.csv"
    rows = [(f"title {row}", sentence(row), "ab"[row % 2]) for row in range(60)]
    path.write_text("title,text,label\n" + "".join(f"{','.join(row)}\n" for row in rows))
    assert guess(path).sentence.endswith("; not read: title")


def test_an_object_is_no_label(here: Path) -> None:
    path = here / "n.json"
    rows = [{"text": sentence(row), "label": {"first": row % 2, "second": row % 3}} for row in range(60)]
    path.write_text(json.dumps(rows))
    fails("the label is an object, {", BAD_DATA, path)


def test_a_label_that_only_dev_has_is_refused(here: Path) -> None:
    train = write_csv(here / "train.csv", reviews(40))
    dev = write_csv(here / "dev.csv", reviews(9, row_4="postive"))
    message = r'^dev.csv, line 6: unknown label "postive". .* knows: negative, positive. Did you mean "positive"\?$'
    with pytest.raises(BertkitError, match=message):
        guess(train, dev=dev)


def test_a_test_file_needs_no_labels(here: Path) -> None:
    train = write_csv(here / "train.csv", reviews(40))
    (here / "test.csv").write_text(f"review\n{sentence(3)}\n", encoding="utf-8")
    (example,) = guess(train, test=here / "test.csv").task.examples("test")
    assert example == TextExample("2", sentence(3))


def test_the_task_outlives_the_folder_it_was_made_in(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = guess(write_csv(here / "r.csv", reviews(40))).task
    monkeypatch.chdir("/")
    again = from_record(json.loads(json.dumps(task.record())))
    assert again == task
    assert again.examples("train") == task.examples("train")


@pytest.mark.parametrize(
    "name", ["r.jsonl", "r.jsonl.gz", "r.tsv", "r.csv.gz", "r.parquet", "semicolons.csv", "bars.csv"]
)
def test_every_kind_of_file_gives_the_same_examples(name: str, here: Path) -> None:
    expected = guess(write_csv(here / "plain.csv", reviews(40))).task.examples("train")
    found = guess(write_as(here / name, reviews(40))).task.examples("train")
    assert [(each.first, each.label) for each in found] == [(each.first, each.label) for each in expected]


def write_as(path: Path, rows: list[tuple[str, str, str]]) -> Path:
    names = ("id", "review", "label")
    if path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.table(dict(zip(names, zip(*rows, strict=True), strict=True))), path)
        return path
    if "jsonl" in path.name:
        text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    else:
        mark = {"semicolons.csv": ";", "bars.csv": "|", "r.tsv": "\t"}.get(path.name, ",")
        text = "".join(mark.join(row) + "\n" for row in [names, *rows])
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_a_file_without_column_names_is_read_from_its_first_line(here: Path) -> None:
    rows = [f'{1 + row % 2},"{sentence(row)}"' for row in range(20)]
    (here / "nameless.csv").write_text("\n".join(rows), encoding="utf-8")
    found = guess(here / "nameless.csv")
    assert found.sentence == (
        "text = 2, label = 1 (2 classes: 1 10, 2 10); there is no line of column names, so the columns are numbered"
    )
    assert len(found.task.examples("train")) + len(found.task.examples("dev")) == 20


def test_columns_without_names_are_no_pair(here: Path) -> None:
    (here / "nameless.csv").write_text("\n".join(f'"{sentence(row)}",{["no", "yes"][row % 2]}' for row in range(20)))
    assert guess(here / "nameless.csv").sentence.startswith("text = 1, label = 2 (2 classes: no 10, yes 10)")


@pytest.mark.parametrize("strange", ["nan", "-inf", "NaN"])
def test_a_number_that_is_none_is_no_class(strange: str, here: Path) -> None:
    rows = [(str(row), sentence(row), strange if row == 5 else str(row % 3)) for row in range(20)]
    with pytest.raises(BertkitError, match=f'r.csv, line 7: "{strange}" is not a number'):
        guess(write_csv(here / "r.csv", rows))


def test_unusual_delimiters_are_mentioned(here: Path) -> None:
    assert guess(write_as(here / "semicolons.csv", reviews())).sentence.endswith("; cells are separated by semicolons")


def test_a_json_list_of_records_is_a_table_and_not_questions(here: Path) -> None:
    rows = [{"id": row, "review": sentence(row), "label": ("bad", "good")[row % 2]} for row in range(40)]
    path = here / "reviews.json"
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    task = guess(path).task
    assert isinstance(task, TextClassificationTask)
    assert len(task.examples("train")) == 36


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", "question,context,answer\nCaf\u00e9?,the caf\u00e9,caf\u00e9\n"),
        ("t.conll", "Caf\u00e9 B-LOC\nis O\n\n"),
    ],
)
def test_an_encoding_is_refused_for_questions_and_tags(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("cp1252") * 9)
    with pytest.raises(BertkitError, match=r"--encoding is for tables of texts; .* iconv -f cp1252 -t UTF-8"):
        guess(path, encoding="cp1252")


def test_columns_that_are_named_are_no_choices(here: Path) -> None:
    rows = [(sentence(row), "up" if row % 3 else "down") for row in range(40)]
    (here / "ab.csv").write_text("A,B\n" + "".join(f"{text},{label}\n" for text, label in rows))
    found = guess(here / "ab.csv", text="A", label="B")
    assert isinstance(found.task, TextClassificationTask)
    assert found.task.labels == ("down", "up")


def test_a_second_text_is_not_ignored_in_files_of_other_tasks(here: Path) -> None:
    path = here / "mc.csv"
    rows = [f"{sentence(row)},one {row},two {row},{row % 2}\n" for row in range(20)]
    path.write_text("question,choice0,choice1,label\n" + "".join(rows))
    fails('has no column "nonsense"', WRONG_USAGE, path, pair="nonsense")


def test_the_split_train_of_a_file_is_all_of_it(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews(40))).task
    assert len(read_split(task, None, "train").examples) < 40
    assert len(read_split(task, here / "r.csv", "train").examples) == 40


@pytest.mark.parametrize(("label", "known"), [("-1", None), ("0", "0")])
def test_a_test_split_of_minus_ones_has_no_labels(here: Path, label: str, known: str | None) -> None:
    train = write_csv(here / "train.csv", [(str(row), sentence(row), str(row % 2)) for row in range(40)])
    test = write_csv(here / "test.csv", [(str(row), sentence(99 + row), label) for row in range(9)])
    task = guess(train, test=test).task
    assert {example.label for example in task.examples("test")} == {known}
