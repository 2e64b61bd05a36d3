"""Tables and lines of prompts with choices."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.task_types import Choice, ChoiceExample
from bertkit.tasks.swag import swag
from bertkit.user_tables.guess import guess


def write_csv(path: Path, header: Sequence[str], *rows: Sequence[object]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def choose(labels: list[int]) -> list[Choice]:
    return [Choice(label, "", (1.0,)) for label in labels]


def test_repeated_ids_are_counted_and_every_row_counts(tmp_path: Path) -> None:
    rows = [("a", "p", "x", "y", "0"), ("a", "q", "x", "y", "1"), ("b", "r", "x", "y", "0")]
    path = write_csv(tmp_path / "t.csv", ["id", "prompt", "A", "B", "label"], *rows)
    task = guess(path, dev=path).task
    sentence = 'occurs more than once (the first is "a"), 1 of them with different labels; every row counts'
    assert [f"1 id of {split} {sentence}" in task.reader.notes() for split in ("train", "dev")] == [True, True]
    assert len(task.examples("dev")) == 3
    assert task.score(task.examples("dev"), choose([0, 1, 1])) == {"accuracy": pytest.approx(2 / 3)}


def test_a_file_to_be_scored_needs_no_ids(tmp_path: Path) -> None:
    train = write_csv(tmp_path / "t.csv", ["id", "prompt", "A", "B", "label"], ("a", "p", "x", "y", "0"))
    dev = write_csv(tmp_path / "dev.csv", ["prompt", "A", "B", "label"], ("q", "x", "y", "1"))
    assert guess(train).task.with_files(dev=[dev]).examples("dev") == [ChoiceExample("2", "q", ("x", "y"), label=1)]


def test_a_single_choice_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"prompt": "p", "choices": ["a"], "label": 0}\n', encoding="utf-8")
    with pytest.raises(BertkitError, match=r"t\.jsonl, line 1: 1 choice; there must be at least two"):
        guess(path)


def test_new_input_needs_no_label(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "new.csv", ["sent1", "sent2", *swag.choices], ("p", "s", *"abcd"))
    assert list(swag.reader.read(path)) == [ChoiceExample("2", "p", tuple("abcd"), "s")]
    assert swag.reader.read_line("7", "p\tx\ty") == ChoiceExample("7", "p", ("x", "y"))
