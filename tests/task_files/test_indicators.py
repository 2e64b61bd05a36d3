"""Columns of 0 and 1, one for each label: found, named, read, and refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.task_types.small_tables import fails, sentence, write_csv
from tests.task_types.small_tables import here as here

from bertkit.errors import BAD_DATA, WRONG_USAGE
from bertkit.task_files.indicators import are_indicators, join_indicators
from bertkit.task_types import from_record
from bertkit.task_types.multi_label import MultiLabelTask
from bertkit.user_tables.guess import guess

_HEADER = "id,comment,toxic,threat,insult"


def _rows(count: int, *, values: Sequence[str] = ("0", "1")) -> list[tuple[str, ...]]:
    """Threats in every third row, insults in every second, toxic if either; row 1 has none of them."""
    rows = []
    for row in range(count):
        threat, insult = row % 3 == 0, row % 2 == 0
        rows.append((str(row), sentence(row), *(values[each] for each in (threat or insult, threat, insult))))
    return rows


def test_three_columns_of_0_and_1_are_labels(here: Path) -> None:
    found = guess(write_csv(here / "t.csv", _rows(12), header=_HEADER))
    assert found.sentence == (
        "text = comment, label = toxic,threat,insult (several of 3 labels, 1.5 per text, a column of 0 and 1 for each: "
        "insult 6, threat 4, toxic 8), id = id"
    )
    assert isinstance(found.task, MultiLabelTask)
    assert found.task.labels == ("toxic", "threat", "insult")
    labels = [example.label for example in found.task.reader.rows("train")]
    assert labels[:4] == [("toxic", "threat", "insult"), (), ("toxic", "insult"), ("toxic", "threat")]


def test_a_label_that_none_of_the_first_rows_has_is_one_too(here: Path) -> None:
    rows = [(*row, "0", "0") for row in _rows(12)]
    found = guess(write_csv(here / "t.csv", rows, header=f"{_HEADER},hate,grief"))
    assert found.task.labels == ("toxic", "threat", "insult", "hate", "grief")


def test_the_record_in_a_model_reads_the_same_labels(here: Path) -> None:
    task = guess(write_csv(here / "t.csv", _rows(12), header=_HEADER)).task
    assert list(from_record(task.record()).reader.rows("train")) == list(task.reader.rows("train"))


@pytest.mark.parametrize("values", [("0.0", "1.0"), ("False", "True"), ("false", "TRUE")])
def test_every_format_spells_the_values_in_its_own_way(values: tuple[str, str], here: Path) -> None:
    found = guess(write_csv(here / "t.csv", _rows(12, values=values), header=_HEADER))
    assert [example.label for example in found.task.reader.rows("train")][1:3] == [(), ("toxic", "insult")]


def test_the_columns_can_be_named(here: Path) -> None:
    path = write_csv(here / "t.csv", _rows(12), header=_HEADER)
    found = guess(path, label="insult, threat")
    assert isinstance(found.task, MultiLabelTask)
    assert found.task.labels == ("insult", "threat")
    assert found.sentence.endswith("; not read: toxic")
    assert guess(path, label="threat").task.labels == ("0", "1")


def test_a_column_whose_name_has_a_comma_is_one_column(here: Path) -> None:
    header = 'id,comment,"toxic,threat",threat,insult'
    found = guess(write_csv(here / "t.csv", _rows(12), header=header), label="toxic,threat")
    assert found.task.labels == ("0", "1")


def test_a_label_that_no_row_of_train_has_is_kept(here: Path) -> None:
    rows = [(*row[:3], "0", row[4]) for row in _rows(12)]
    found = guess(write_csv(here / "t.csv", rows, header=_HEADER), label="toxic,threat,insult")
    assert found.task.labels == ("toxic", "threat", "insult")
    assert "threat 0" in found.sentence


def test_unknown_labels_are_left_out_of_training(here: Path) -> None:
    """Kaggle writes -1 into all columns of rows that are not scored."""
    rows = [*_rows(12), ("12", sentence(12), "-1", "-1", "-1"), ("13", sentence(13), "", "", "")]
    train = write_csv(here / "t.csv", _rows(12), header=_HEADER)
    test = write_csv(here / "test.csv", rows, header=_HEADER)
    labels = [example.label for example in guess(train, test=test).task.reader.rows("test")]
    assert labels[11:] == [(), None, None]


def test_a_test_file_without_the_columns_has_no_labels(here: Path) -> None:
    train = write_csv(here / "t.csv", _rows(12), header=_HEADER)
    test = write_csv(here / "test.csv", [row[:2] for row in _rows(5)], header="id,comment")
    assert [example.label for example in guess(train, test=test).task.reader.rows("test")] == [None] * 5


def test_a_value_between_0_and_1_is_an_error_with_its_row(here: Path) -> None:
    rows = [*_rows(6), ("6", sentence(6), "1", "0.4", "0")]
    path = write_csv(here / "t.csv", rows, header=_HEADER)
    fails('^t.csv, line 8: column "threat" is 0.4. It must be 0 or 1', BAD_DATA, path, label="toxic,threat")
    unknown = write_csv(here / "u.csv", [*_rows(6), ("6", sentence(6), "1", "", "0")], header=_HEADER)
    fails('^u.csv, line 8: column "threat" is empty. It must be 0 or 1', BAD_DATA, unknown, label="toxic,threat")


def test_rows_of_unknown_labels_hide_no_column(here: Path) -> None:
    rows = [(*row[:2], "", "", "") if int(row[0]) < 3 else row for row in _rows(12)]
    found = guess(write_csv(here / "t.csv", rows, header=_HEADER)).task
    assert found.labels == ("toxic", "threat", "insult")
    assert len(list(found.reader.labelled("train"))) == 9


def test_classes_as_columns_are_said_to_be_labels(here: Path) -> None:
    rows = [(str(row), sentence(row), *("1" if row % 3 == place else "0" for place in range(3))) for row in range(12)]
    sentence_ = guess(write_csv(here / "t.csv", rows, header="id,text,neg,neu,pos")).sentence
    assert "; if they are classes, write the name of each row's class into one column" in sentence_
    assert "if they are classes" not in guess(write_csv(here / "u.csv", _rows(12), header=_HEADER)).sentence


@pytest.mark.parametrize("header", ["id,comment,A,B,C", "id,comment,answer_1,answer_2,answer_3"])
def test_columns_of_0_and_1_are_no_choices(header: str, here: Path) -> None:
    path = write_csv(here / "t.csv", _rows(12), header=header)
    names = tuple(header.split(",")[2:])
    assert guess(path).task.labels == names
    assert guess(path, label=",".join(names[1:])).task.labels == names[1:]


def test_spaces_around_a_name_are_not_part_of_the_label(here: Path) -> None:
    rows = [dict(zip(("text", "bad ", " dull", "odd"), row[1:], strict=True)) for row in _rows(12)]
    path = here / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    task = guess(path).task
    assert task.labels == ("bad", "dull", "odd")
    assert next(iter(task.reader.rows("train"))).label == ("bad", "dull", "odd")
    assert guess(path, label="bad , dull,odd").task.labels == ("bad", "dull", "odd")


def test_a_test_file_with_some_of_the_columns_is_an_error(here: Path) -> None:
    train = write_csv(here / "t.csv", _rows(12), header=_HEADER)
    test = write_csv(here / "test.csv", [(*row[:3], row[4]) for row in _rows(5)], header="id,comment,toxic,insult")
    fails('test.csv has no column "threat"', WRONG_USAGE, train, test=test)


def test_a_test_file_of_floats_may_have_no_labels(here: Path) -> None:
    train = write_csv(here / "t.csv", _rows(12, values=("0.0", "1.0")), header=_HEADER)
    rows = [(*row[:2], "-1.0", "-1.0", "-1.0") for row in _rows(5)]
    task = guess(train, test=write_csv(here / "test.csv", rows, header=_HEADER)).task
    assert task.files.splits["test"].columns.answers == ()


def test_wrong_names_are_refused(here: Path) -> None:
    path = write_csv(here / "t.csv", _rows(12), header=_HEADER)
    fails('no column "thread"', WRONG_USAGE, path, label="toxic,thread")
    fails('column "toxic" is named twice', WRONG_USAGE, path, label="toxic,toxic")
    fails("separated by one comma each", WRONG_USAGE, path, label="toxic,")
    fails(
        "several columns of labels are --kind labels, not number",
        WRONG_USAGE,
        path,
        label="toxic,threat",
        kind="number",
    )


def test_rows_without_any_label_are_refused(here: Path) -> None:
    rows = [(*row[:2], "0", "0", "0") for row in _rows(12)]
    path = write_csv(here / "t.csv", rows, header=_HEADER)
    fails('no row has a label in column "toxic,threat"', BAD_DATA, path, label="toxic,threat")


def test_two_columns_of_0_and_1_may_be_something_else(here: Path) -> None:
    path = write_csv(here / "t.csv", [row[:4] for row in _rows(12)], header="id,comment,toxic,verified")
    fails("the label may be toxic or verified. .* of 0 and 1 for each: --label COLUMN,COLUMN", WRONG_USAGE, path)


def test_what_indicators_are() -> None:
    assert are_indicators(["0", " 1", "1"])
    assert are_indicators(["0", "0"])
    assert not are_indicators(["1", "1"])
    assert not are_indicators(["0", "1", "2"])
    assert join_indicators({"a, b": "1", "c": "true"}, "here") == '["a, b", "c"]'
