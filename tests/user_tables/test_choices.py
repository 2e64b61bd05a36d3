"""A user's own table of choices."""

from __future__ import annotations

from pathlib import Path

from tests.task_types.small_tables import fails, sentence, write_csv
from tests.task_types.small_tables import here as here

from bertkit.errors import BAD_DATA, WRONG_USAGE
from bertkit.task_types import MultipleChoiceTask, TextClassificationTask
from bertkit.user_tables.guess import guess


def _write(path: Path, labels: list[str]) -> Path:
    rows = [f"{sentence(row)},one {row},two {row},{label}\n" for row, label in enumerate(labels)]
    path.write_text("question,choice0,choice1,answer\n" + "".join(rows), encoding="utf-8")
    return path


def test_the_guess_is_described_in_a_sentence(here: Path) -> None:
    found = guess(_write(here / "c.csv", ["1", "2"] * 10))
    assert isinstance(found.task, MultipleChoiceTask)
    assert found.task.spelling == "number from 1"
    assert found.sentence == (
        "prompt = question, choices = choice0 to choice1 (2 each), "
        "label = answer (the number of the right one, counted from 1)"
    )


def test_no_label_at_all_is_refused(here: Path) -> None:
    fails('no row has a label in column "answer"', BAD_DATA, _write(here / "c.csv", [""] * 9))


def test_a_table_that_ends_after_its_names_is_refused(here: Path) -> None:
    fails("has a line of column names and no rows", BAD_DATA, _write(here / "c.csv", []))


def test_another_kind_of_task_on_the_same_columns_is_what_the_user_says(here: Path) -> None:
    found = guess(_write(here / "c.csv", ["1", "2"] * 10), text="question", label="answer", kind="classes")
    assert isinstance(found.task, TextClassificationTask)


def test_columns_that_are_named_are_no_choices(here: Path) -> None:
    rows = [(sentence(row), "up" if row % 3 else "down") for row in range(40)]
    (here / "ab.csv").write_text("A,B\n" + "".join(f"{text},{label}\n" for text, label in rows))
    found = guess(here / "ab.csv", text="A", label="B")
    assert isinstance(found.task, TextClassificationTask)
    assert found.task.labels == ("down", "up")


def test_columns_x_and_y_are_no_choices(here: Path) -> None:
    rows = [(sentence(row), f"{row}.5", f"{row}.7", "up" if row % 3 else "down") for row in range(40)]
    assert isinstance(guess(write_csv(here / "xy.csv", rows, "text,X,Y,label")).task, TextClassificationTask)


def test_choices_without_a_label_say_how_to_name_another_task(here: Path) -> None:
    rows = [(sentence(row), f"one {row}", f"two {row}", str(row % 2)) for row in range(40)]
    path = write_csv(here / "ab.csv", rows, "text,A,B,rating")
    fails(
        r"has choices \(A, B\) and no column called label. Name it: --label COLUMN; if these are no", WRONG_USAGE, path
    )


def test_columns_of_numbers_are_choices_if_the_label_names_one(here: Path) -> None:
    def write(labels: list[str]) -> Path:
        rows = [f"{sentence(row)},{row},{row + 1},{label}\n" for row, label in enumerate(labels)]
        (here / "n.csv").write_text("text,A,B,label\n" + "".join(rows))
        return here / "n.csv"

    assert isinstance(guess(write(["0", "1"] * 10)).task, TextClassificationTask)
    assert isinstance(guess(write(["A", "B"] * 10)).task, MultipleChoiceTask)
    assert isinstance(guess(write(["up", "down"] * 10)).task, TextClassificationTask), "words are no letters"
    assert isinstance(guess(write(["A", ""] * 10)).task, MultipleChoiceTask)
    assert isinstance(guess(write([str(row) for row in range(20)])).task, MultipleChoiceTask)
