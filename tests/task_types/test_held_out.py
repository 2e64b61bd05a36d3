"""What is held out as dev, and what train and dev have in common."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.task_types.small_tables import here as here
from tests.task_types.small_tables import reviews, sentence, write_csv

from bertkit.task_types import TextExample
from bertkit.task_types.held_out import IdCount, hold_out
from bertkit.user_tables.guess import guess


def test_a_tenth_of_every_class_is_held_out(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews(400))).task
    train, dev = task.examples("train"), task.examples("dev")
    assert len(train) + len(dev) == 400
    assert Counter(example.label for example in dev) == {"negative": 13, "positive": 27}
    assert any(note.startswith("no dev file: 40 of 400 examples are held out as dev") for note in task.reader.notes())


def test_many_small_classes_do_not_make_a_third_of_train_dev(here: Path) -> None:
    rows = [(str(row), sentence(row), f"class {row % 100}") for row in range(300)]
    task = guess(write_csv(here / "r.csv", rows)).task
    train, dev = task.examples("train"), task.examples("dev")
    assert (len(train), len(dev)) == (240, 60)
    assert len({example.label for example in dev}) == 60
    notes = task.reader.notes()
    assert any("60 of 300 examples are held out as dev (20%, class by class, chosen by" in each for each in notes)
    assert any(each.startswith("dev has no example of class ") for each in notes)
    dev_turned = guess(write_csv(here / "turned.csv", rows[::-1])).task.examples("dev")
    assert {example.first for example in dev_turned} == {example.first for example in dev}


def test_classes_of_five_rows_have_one_in_dev(here: Path) -> None:
    rows = [(str(row), sentence(row), f"class {row % 37}") for row in range(5 * 37)]
    dev = guess(write_csv(here / "r.csv", rows)).task.examples("dev")
    assert len(dev) == len({example.label for example in dev}) == 37


def test_dev_is_never_empty(here: Path) -> None:
    rows = [(str(row), sentence(row % 2), "7.25" if row % 2 else "1.5") for row in range(4)]
    assert hold_out([TextExample(*row) for row in rows], 0.1, by_class=False)[1]


def test_the_held_out_rows_do_not_depend_on_the_order(here: Path) -> None:
    rows = reviews(99)
    dev = guess(write_csv(here / "a.csv", rows)).task.examples("dev")
    turned = guess(write_csv(here / "b.csv", rows[::-1])).task.examples("dev")
    assert {example.first for example in dev} == {example.first for example in turned}


def test_a_text_of_several_labels_does_not_depend_on_the_order() -> None:
    rows = [TextExample(str(row), sentence(row % 40), None, "abc"[row % 3]) for row in range(80)]
    held = {example.id for example in hold_out(rows, 0.1)[1]}
    assert {example.id for example in hold_out(rows[::-1], 0.1)[1]} == held


def test_equal_texts_are_never_split(here: Path) -> None:
    rows = [(row, sentence(int(row) % 37), label) for row, _, label in reviews(222)]
    rows = [(row, text.upper() if int(row) % 2 else text, label) for row, text, label in rows]
    task = guess(write_csv(here / "r.csv", rows)).task
    train, dev = ({example.first.lower() for example in task.examples(split)} for split in ("train", "dev"))
    assert dev
    assert not train & dev


def write_pairs(path: Path, premises: int, rows: int) -> Path:
    pairs = [(sentence(row % premises), sentence(100 + row), ["no", "yes"][row % 2]) for row in range(rows)]
    path.write_text("premise,hypothesis,label\n" + "".join(f"{','.join(each)}\n" for each in pairs))
    return path


def test_pairs_with_the_same_first_text_are_never_split(here: Path) -> None:
    task = guess(write_pairs(here / "p.csv", 20, 200)).task
    train, dev = ({example.first for example in task.examples(split)} for split in ("train", "dev"))
    assert 10 <= len(task.examples("dev")) <= 40
    assert not train & dev
    assert "rows with the same first text stay together" in " ".join(task.reader.notes())


def test_pairs_of_very_few_first_texts_are_split(here: Path) -> None:
    task = guess(write_pairs(here / "p.csv", 2, 200)).task
    assert 10 <= len(task.examples("dev")) <= 40
    assert "equal rows stay together" in " ".join(task.reader.notes())


def test_ids_that_occur_more_than_once_are_counted() -> None:
    ids = IdCount()
    for id in ("a", "b", "a", "c", "b"):
        ids.add(id)
    assert len(ids) == 5
    assert ids.describe("x.csv", iter(["c", "b", "a"])) == [
        '2 ids of x.csv occur more than once (the first is "b"); every row counts'
    ]
    assert IdCount().describe("x.csv", iter([])) == []


def test_a_text_that_fills_the_file_does_not_become_all_of_dev(here: Path) -> None:
    rows = [(str(row), "the same words" if row < 80 else sentence(row), "ab"[row % 2]) for row in range(100)]
    task = guess(write_csv(here / "r.csv", rows), text="review").task
    assert 1 <= len(task.examples("dev")) <= 12


def test_a_dev_file_is_used_and_its_overlap_counted(here: Path) -> None:
    train = write_csv(here / "train.csv", reviews(40))
    dev = write_csv(here / "dev.csv", [*reviews(3), ("77", sentence(77), "positive")])
    task = guess(train, dev=dev).task
    assert (len(task.examples("train")), len(task.examples("dev"))) == (40, 4)
    assert "3 of 4 dev examples have a text that is also in train, so the scores are too high" in task.reader.notes()


def test_only_examples_that_are_used_can_overlap(here: Path) -> None:
    """Of 40 rows of train the last 3 are in dev, of which 2 come last."""
    train = write_csv(here / "train.csv", reviews(40))
    dev = write_csv(here / "dev.csv", [reviews(40)[37], ("77", sentence(77), "positive"), *reviews(40)[38:]])
    reader = guess(train, dev=dev).task.reader
    shared = "of {} dev examples have a text that is also in train, so the scores are too high"
    assert f"3 {shared.format(4)}" in reader.notes()
    assert f"1 {shared.format(2)}" in reader.notes(None, 2)
    assert not any("also in train" in note for note in reader.notes(37))


def test_texts_that_differ_in_case_are_no_contradiction(here: Path) -> None:
    """In chemistry they are two molecules."""
    rows = [
        ("1", "Cc1ccoc1CNC", "aromatic"),
        ("2", "CC1CCOC1CNC", "not"),
        *((f"x{n}", sentence(n), "not") for n in range(9)),
    ]
    task = guess(write_csv(here / "r.csv", rows), dev=write_csv(here / "d.csv", rows[:2]), allow_rare_labels=True).task
    assert not any("different labels" in note for note in task.reader.notes())


def test_contradictions_are_counted(here: Path) -> None:
    rows = [*reviews(40), ("41", sentence(4), "negative"), ("42", sentence(4), "positive")]
    task = guess(write_csv(here / "r.csv", rows), dev=write_csv(here / "d.csv", reviews(3))).task
    assert any(
        each.startswith("1 text of train occurs with different labels (the first is ") for each in task.reader.notes()
    )
