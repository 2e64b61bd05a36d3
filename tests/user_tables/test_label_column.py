"""Whether a label column holds classes or numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.task_types.small_tables import fails, sentence, write_csv
from tests.task_types.small_tables import here as here

from bertkit.errors import BAD_DATA
from bertkit.user_tables.guess import guess


def test_a_class_that_may_be_a_missing_label_is_pointed_out(here: Path) -> None:
    rows = [(str(row), sentence(row), ("good", "bad", "NaN")[row % 3]) for row in range(40)]
    for missing, shown in (("NaN", True), ("N/A", True), ("nanny", False)):
        kept = [(id, text, missing if label == "NaN" else label) for id, text, label in rows]
        guessed = guess(write_csv(here / f"{len(missing)}.csv", kept, header="id,review,label"))
        note = f'if "{missing}" means that the label is missing, leave those cells empty'
        assert (note in guessed.sentence) is shown


def test_minus_one_beside_numbered_classes_may_be_a_missing_label(here: Path) -> None:
    for lowest, highest, shown in ((-1, 2, True), (-1, 1, False), (-2, 2, False), (0, 3, False)):
        rows = [(sentence(row), str(lowest + row % (highest - lowest + 1))) for row in range(60)]
        guessed = guess(write_csv(here / f"{lowest}{highest}.csv", rows, header="text,label"))
        assert ('if "-1" means that the label is missing' in guessed.sentence) is shown


def test_few_whole_numbers_are_classes_unless_told_otherwise(here: Path) -> None:
    rows = [(str(row), sentence(row), str(1 + row % 5)) for row in range(40)]
    path = write_csv(here / "stars.csv", rows, header="id,review,stars")
    assert guess(path).task.labels == ("1", "2", "3", "4", "5")
    assert guess(path, kind="number").task.labels == ()


@pytest.mark.parametrize(
    ("header", "values", "kind"),
    [
        ("id,text,intent", [row % 30 for row in range(90)], "class"),
        ("id,text,label", [1 + row % 25 for row in range(90)], "class"),
        ("id,text,label", [2 * (row % 30) for row in range(90)], "number"),  # with gaps
        ("id,text,label", list(range(90)), "number"),  # each once
        ("id,text,price", [row % 30 for row in range(90)], "number"),
    ],
)
def test_many_numbered_classes_are_known_by_their_column(header: str, values: list[int], kind: str, here: Path) -> None:
    rows = [(str(row), sentence(row), str(value)) for row, value in enumerate(values)]
    task = guess(write_csv(here / "t.csv", rows, header), label=header.rpartition(",")[2]).task
    assert bool(task.labels) == (kind == "class")


@pytest.mark.parametrize("cells", [["[0, 1, 1]", "[1, 0, 0]"], ["[0.0, 1.0]", "[1.0, 1.0]"], ["[true, false]"] * 2])
def test_a_vector_of_indicators_is_no_list_of_labels(cells: list[str], here: Path) -> None:
    lines = [f'{{"text": "{sentence(row)}", "labels": {cells[row % 2]}}}' for row in range(40)]
    (here / "t.jsonl").write_text("\n".join(lines))
    fails("lists of [23] numbers that are 0 or 1, and not the names of labels", BAD_DATA, here / "t.jsonl")


def test_numbers_as_classes_are_in_the_order_of_their_size(here: Path) -> None:
    rows = [(str(row), sentence(row), str(8 + row % 5)) for row in range(40)]
    assert guess(write_csv(here / "n.csv", rows)).task.labels == ("8", "9", "10", "11", "12")


def test_a_label_column_of_mostly_different_values_is_an_error(here: Path) -> None:
    rows = [
        (str(row), sentence(row), f"word{'abcdefghijklmnopqrstuvwxyz'[row % 26] * (1 + row // 26)}")
        for row in range(60)
    ]
    path = write_csv(here / "r.csv", rows)
    fails('column "label" has 60 different values in 60 rows', BAD_DATA, path)
    assert len(guess(path, kind="classes", allow_rare_labels=True).task.labels) == 60


def test_numbers_with_a_decimal_comma_are_not_taken_for_classes(here: Path) -> None:
    path = here / "n.csv"
    lines = (f"{row};{sentence(row)};{row % 4},{5 * (row % 2)}\n" for row in range(60))
    path.write_text("id;text;label\n" + "".join(lines))
    fails("such as 0,0, look like numbers with a comma. Write 1,5 as 1.5 and 1,000 as 1000, or say", BAD_DATA, path)
    assert guess(path, kind="classes").task.labels == ("0,0", "1,5", "2,0", "3,5")


def test_whole_numbers_beside_those_with_a_decimal_comma_are_no_separate_labels(here: Path) -> None:
    path = here / "n.csv"
    lines = (f"{row};{sentence(row)};{('4', '4,5', '1', '3,5', '3')[row % 5]}\n" for row in range(60))
    path.write_text("id;text;label\n" + "".join(lines))
    fails("such as 4,5, look like numbers with a comma. Write 1,5 as 1.5 and 1,000 as 1000, or say", BAD_DATA, path)
    fails('line 3: "4,5" is not a number. Write 1,5 as 1.5 and 1,000 as 1000.', BAD_DATA, path, kind="number")
    assert guess(path, kind="labels").task.labels == ("1", "3", "4", "5")


def test_whole_numbers_too_large_for_a_float_are_classes(here: Path) -> None:
    path, large = here / "n.csv", ("8" * 400, "9" * 400)
    path.write_text("text,label\n" + "".join(f"{sentence(row)},{large[row % 2]}\n" for row in range(60)))
    assert guess(path).task.labels == large


@pytest.mark.parametrize(
    ("cells", "doubt"),
    [
        (("1.250", "999", "12.000"), "if 1.250 is 1250, write it so: the point is read as a decimal point"),
        (("1.250", "999.5"), ""),
        (("0.250", "1.500"), ""),
        (("1", "2"), ""),
    ],
)
def test_a_point_may_set_thousands_apart(cells: tuple[str, ...], doubt: str, here: Path) -> None:
    rows = [(str(row), sentence(row), cells[row % len(cells)]) for row in range(60)]
    found = guess(write_csv(here / "n.csv", rows), kind="number").sentence
    assert found.partition(" on average")[2].partition(")")[0].removeprefix("; ") == doubt
    (here / "n.jsonl").write_text("".join(json.dumps({"text": text, "label": cell}) + "\n" for _, text, cell in rows))
    assert " on average)" in guess(here / "n.jsonl", kind="number").sentence  # where a number has a type


def test_the_ends_of_large_numbers_are_told_apart_and_those_of_32_bits_are_short(here: Path) -> None:
    for low, high, shown in (("1700000001", "1700000007", None), ("0.10000000149", "4.80000019", "0.1 to 4.8")):
        rows = [(str(row), sentence(row), (low, high)[row % 2]) for row in range(60)]
        assert f"from {shown or f'{low} to {high}'}," in guess(write_csv(here / "n.csv", rows), kind="number").sentence


@pytest.mark.parametrize("form", ["1.185,{:02} €", "$2,722.{:02}", "-3.{:02} EUR", "GBP 7.{:02}"])
def test_amounts_of_money_are_not_taken_for_labels(here: Path, form: str) -> None:
    path = here / "n.tsv"
    rows = (f"{row}\t{sentence(row)}\t{form.format(row)}\n" for row in range(60))
    path.write_text("id\treview\tlabel\n" + "".join(rows), encoding="utf-8")
    fails("look like amounts of money. Write the numbers alone, such as 1185.06", BAD_DATA, path)


def test_codes_of_letters_and_a_number_are_classes(here: Path) -> None:
    path = write_csv(here / "n.csv", [(str(row), sentence(row), f"SDG {row % 3}") for row in range(60)])
    assert guess(path).task.labels == ("SDG 0", "SDG 1", "SDG 2")


@pytest.mark.parametrize("mark", [" ", "'"])
def test_numbers_with_separated_thousands_are_not_taken_for_classes(here: Path, mark: str) -> None:
    path = here / "n.csv"
    write_csv(path, [(str(row), sentence(row), f"{row % 3 + 1}{mark}500" if row % 4 else "900") for row in range(60)])
    fails(f"such as 2{mark}500, look like numbers whose thousands are set apart", BAD_DATA, path)
    assert len(guess(path, kind="classes").task.labels) == 4
