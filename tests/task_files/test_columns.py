"""Which columns of a table are the text, the pair and the label."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.clock import processor_seconds
from tests.task_types.small_tables import fails, reviews, sentence, write_csv
from tests.task_types.small_tables import here as here

from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.task_types import RegressionTask, TextClassificationTask
from bertkit.user_tables.guess import guess


def test_ten_thousand_columns_are_looked_at_once(here: Path) -> None:
    """A partner was looked for among all others for each of them: 50 s."""
    names = [f"c{number}" for number in range(9_999)]
    (here / "wide.csv").write_text(",".join(names) + "\n" + (",".join(["x"] * 9_999) + "\n") * 3, encoding="utf-8")

    def fail(label: str | None) -> None:
        with pytest.raises(BertkitError) as caught:
            guess(here / "wide.csv", label=label)
        assert len(str(caught.value)) < 1000

    assert processor_seconds(lambda: fail("nowhere")) < 10
    assert processor_seconds(lambda: fail(None)) < 10


def test_columns_may_be_given(here: Path) -> None:
    path = write_csv(here / "t.csv", reviews(), header="title,body,label")
    found = guess(path, text="body", label="label")
    assert found.sentence.startswith("text = body, label = label")
    assert isinstance(found.task, TextClassificationTask)
    assert not found.task.pair


@pytest.mark.parametrize(
    ("header", "pair"),
    [
        ("sentence1,sentence2,label", ("sentence1", "sentence2")),
        ("text_b,text_a,label", ("text_a", "text_b")),
        ("premise,hypothesis,gold_label", ("premise", "hypothesis")),
        ("question,sentence,target", ("question", "sentence")),
        ("first_line,second_line,class", ("first_line", "second_line")),
    ],
)
def test_a_pair_is_known_by_its_names(header: str, pair: tuple[str, str], here: Path) -> None:
    rows = [(sentence(row), sentence(row + 500), label) for row, (_, _, label) in enumerate(reviews())]
    task = guess(write_csv(here / "pairs.csv", rows, header)).task
    columns = task.files.splits["train"].columns
    assert (columns.first, columns.second) == pair
    assert isinstance(task, TextClassificationTask)
    assert task.pair


@pytest.mark.parametrize("name", ["text", "Review", "sentence"])
def test_a_column_named_as_texts_are_is_the_text_beside_a_longer_one(name: str, here: Path) -> None:
    texts = [(sentence(row), f"{sentence(row)} because {sentence(row + 9)}") for row in range(len(reviews()))]
    rows = [(*both, label) for both, (_, _, label) in zip(texts, reviews(), strict=True)]
    found = guess(write_csv(here / "t.csv", rows, f"{name},remark,label"))
    assert found.sentence.startswith(f"text = {name}, label")
    assert "not read: remark" in found.sentence


def test_a_pair_may_be_given(here: Path) -> None:
    rows = [(sentence(row), sentence(row + 500), label) for row, (_, _, label) in enumerate(reviews())]
    task = guess(write_csv(here / "pairs.csv", rows, "title,body,label"), text="title", pair="body").task
    assert isinstance(task, TextClassificationTask)
    assert task.pair
    assert task.examples("train")[0].second is not None


def test_a_label_column_without_a_known_name_is_found_by_its_values(here: Path) -> None:
    path = write_csv(here / "t.csv", reviews(), header="id,review,verdict")
    assert guess(path).task.files.splits["train"].columns.label == "verdict"


def test_the_only_column_of_numbers_is_the_label(here: Path) -> None:
    rows = [(str(row), sentence(row), str(900 + row * 37 % 53)) for row in range(60)]
    found = guess(write_csv(here / "t.csv", rows, header="number,review,price"))
    assert isinstance(found.task, RegressionTask)
    assert found.task.files.splits["train"].columns.label == "price"
    ids = [(str(row), sentence(row), "x") for row in range(60)]
    fails("no column that looks like a label", WRONG_USAGE, write_csv(here / "n.csv", ids, header="number,review,x"))


def test_an_object_is_no_text(here: Path) -> None:
    rows = [{"meta": {"id": row, "more": "m" * 99}, "text": sentence(row), "label": "ab"[row % 2]} for row in range(40)]
    (here / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert guess(here / "t.jsonl").task.files.splits["train"].columns.first == "text"


def test_an_id_is_no_text(here: Path) -> None:
    rows = [(f"0a7f9b3c5d{row:04}", f"mill {row}", "ab"[row % 2]) for row in range(40)]
    assert guess(write_csv(here / "t.csv", rows, "id,words,answer_kind")).sentence.startswith("text = words")


def test_two_possible_label_columns_are_an_error(here: Path) -> None:
    rows = [f"{sentence(row)},{label},{'en' if row % 2 else 'fr'}" for row, (_, _, label) in enumerate(reviews())]
    (here / "t.csv").write_text("\n".join(["review,verdict,language", *rows]), encoding="utf-8")
    fails("the label may be verdict or language. Name it: --label COLUMN. Several labels", WRONG_USAGE, here / "t.csv")


def test_a_class_with_the_name_of_its_column_is_an_error(here: Path) -> None:
    """The line of names would be a row: one of its cells recurs, as in a table without names."""
    rows = [(id, text, "label" if label == "positive" else label) for id, text, label in reviews()]
    path = write_csv(here / "reviews.csv", rows, header="number,remark,label")
    fails('^reviews.csv, line 1: "label" may be the name of its column, or a label as in other rows. Rename', 3, path)
    numbered = [("7", text, "topic" if place % 2 else "city") for place, (_, text, _) in enumerate(reviews())]
    assert guess(write_csv(here / "t.csv", numbered[1:], header="7,a seventh text,topic")).task.labels == (
        "city",
        "topic",
    )


def test_a_column_is_not_two_things_at_once(here: Path) -> None:
    path = write_csv(here / "reviews.csv", reviews())
    message = '^reviews.csv: column "review" is named twice. --text, --pair and --label differ.$'
    fails(message, WRONG_USAGE, path, text="review", pair="review")
    fails(message, WRONG_USAGE, path, text="review", label="review")


def test_a_wrong_column_name_is_an_error_that_lists_the_columns(here: Path) -> None:
    path = write_csv(here / "reviews.csv", reviews())
    message = r'^reviews.csv has no column "lable". Its columns: id, review, label. Did you mean "label"\?$'
    fails(message, WRONG_USAGE, path, label="lable")


_MACHINE_MADE = [
    "2018-10-11T12:34:{0:02}.000Z",
    "2018-10-11 12:34:{0:02}",
    "https://example.org/a/long/address/{0}",
    "3F2504E0-4F89-11D3-9A0C-0305E82C33{0:02}",
]


@pytest.mark.parametrize("value", _MACHINE_MADE)
def test_dates_addresses_and_ids_are_no_label(here: Path, value: str) -> None:
    rows = [(sentence(row), value.format(row % 4)) for row in range(40)]
    path = write_csv(here / "queries.csv", rows, "text,created")
    fails("has no column that looks like a label: the columns beside the text are created", WRONG_USAGE, path)


@pytest.mark.parametrize("value", _MACHINE_MADE)
def test_dates_addresses_and_ids_are_no_text_beside_one(here: Path, value: str) -> None:
    rows = [(value.format(row), f"mill {row}", "ab"[row % 2]) for row in range(40)]
    path = write_csv(here / "queries.csv", rows, "where,query,label")
    assert guess(path).sentence.startswith("text = query, label = label")
    path.write_text("where,label\n" + "".join(f"{where},{label}\n" for where, _, label in rows), encoding="utf-8")
    assert guess(path).sentence.startswith("text = where, label = label"), "such as addresses that are to be judged"
