"""What all readers share: which examples of a split are read, and further dev sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.task_types import Columns, Split, TaskFiles, TextClassificationTask

ROWS = "id,text,label\n" + "".join(f"{row},text {row},{'ab'[row % 2]}\n" for row in range(20)) + "20,text 20,\n"


@pytest.fixture
def task(tmp_path: Path) -> TextClassificationTask:
    columns = Columns(first="text", label="label", id="id")
    splits = {
        name: Split(files=(f"{name}.csv",), columns=columns, may_lack_labels=True)
        for name in ("train", "dev", "dev_far", "dev_absent", "test")
    }
    for name in ("train", "dev", "dev_far", "test"):
        (tmp_path / f"{name}.csv").write_text(ROWS)
    files = TaskFiles(home="here", folder=tmp_path, splits=splits)
    return TextClassificationTask(name="t", metric="accuracy", labels=("a", "b"), files=files)


def test_unlabelled_rows_are_left_out_of_train_and_dev_only(task: TextClassificationTask) -> None:
    counts = {split: len(task.examples(split)) for split in ("train", "dev", "test")}
    assert counts == {"train": 20, "dev": 20, "test": 21}
    assert len(list(task.reader.rows("train"))) == 21


def test_held_out_examples_are_dev_and_not_train(task: TextClassificationTask) -> None:
    split = replace(task, heldout=0.2)
    train, dev = split.examples("train"), split.examples("dev")
    assert len(dev) == 4
    assert sorted([*train, *dev], key=lambda each: int(each.id)) == task.examples("train")


def test_further_dev_sets_are_those_whose_files_exist(task: TextClassificationTask) -> None:
    assert task.reader.extra_dev_splits() == ["dev_far"]


def test_new_input_is_counted_and_repeated_ids_are_mentioned(task: TextClassificationTask, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,text\n1,a\n2,b\n1,c\n")
    assert task.reader.inspect_input(tmp_path / "new.csv") == (
        3,
        ['1 id of new.csv occurs more than once (the first is "1"); every row counts'],
    )
