"""A user's own texts with labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.task_types.small_tables import fails, reviews, sentence, write_csv
from tests.task_types.small_tables import here as here

from bertkit.errors import BAD_DATA, BertkitError
from bertkit.task_types import TextClassificationTask
from bertkit.user_tables.guess import guess


def test_the_guess_is_described_in_a_sentence(here: Path) -> None:
    found = guess(write_csv(here / "reviews.csv", reviews(40)))
    assert found.sentence == "text = review, label = label (2 classes: negative 14, positive 26), id = id"
    assert isinstance(found.task, TextClassificationTask)
    assert found.task.labels == ("negative", "positive")
    assert not found.task.pair
    assert (found.task.metric, found.task.also) == ("accuracy", ("accuracy", "macro_f1", "matthews"))


def test_one_class_is_refused(here: Path) -> None:
    rows = [(str(row), sentence(row), "good") for row in range(9)]
    fails('every row has the label "good". There must be two labels or more', BAD_DATA, write_csv(here / "r.csv", rows))


def test_no_label_at_all_is_refused(here: Path) -> None:
    rows = [(str(row), sentence(row), "") for row in range(9)]
    fails('no row has a label in column "label"', BAD_DATA, write_csv(here / "r.csv", rows))


def test_an_object_is_no_label(here: Path) -> None:
    path = here / "n.json"
    rows = [{"text": sentence(row), "label": {"first": row % 2, "second": row % 3}} for row in range(60)]
    path.write_text(json.dumps(rows))
    fails("the label is an object, {", BAD_DATA, path)
    fails("Name one of label.first, label.second: --label COLUMN.", BAD_DATA, path)
    found = guess(path, dev=path, test=path, label="label.second")
    assert found.sentence == "text = text, label = label.second (3 classes: 0 20, 1 20, 2 20)"
    assert [example.label for example in found.task.examples("test")] == ["0", "1", "2"] * 20


def test_columns_without_names_are_no_pair(here: Path) -> None:
    (here / "nameless.csv").write_text("\n".join(f'"{sentence(row)}",{["no", "yes"][row % 2]}' for row in range(20)))
    assert guess(here / "nameless.csv").sentence.startswith("text = 1, label = 2 (2 classes: no 10, yes 10)")


@pytest.mark.parametrize("strange", ["nan", "-inf", "NaN"])
def test_a_number_that_is_none_is_no_class(strange: str, here: Path) -> None:
    rows = [(str(row), sentence(row), strange if row == 5 else str(row % 3)) for row in range(20)]
    with pytest.raises(BertkitError, match=f'r.csv, line 7: "{strange}" is not a number'):
        guess(write_csv(here / "r.csv", rows))


def test_a_word_among_numbers_is_named(here: Path) -> None:
    rows = [(str(row), sentence(row), "many" if row == 4 else str(row / 2)) for row in range(60)]
    path = write_csv(here / "r.csv", rows, header="id,review,score")
    fails('r.csv, line 6: "many" is not a number', BAD_DATA, path, kind="number")


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        (("1", "1.0", "1e0"), "all numbers of the label column are 1, or too near to it to be told apart"),
        (("0", "5e-324"), "all numbers of the label column are 0, or too near"),
        (("1e308", "-1e308"), "t.csv, line 2: 1e308 is too large; it must be from -1e100 to 1e100"),
        (("1", "inf"), '"inf" is not a number'),
        (("1", "nan"), '"nan" is not a number'),
    ],
)
def test_numbers_without_a_scale_are_refused(here: Path, numbers: tuple[str, ...], message: str) -> None:
    rows = [(str(row), sentence(row), numbers[row % len(numbers)]) for row in range(60)]
    fails(message, BAD_DATA, write_csv(here / "t.csv", rows, header="id,review,score"), kind="number")
