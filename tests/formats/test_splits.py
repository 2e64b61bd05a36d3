"""Folders as data: a file for each split, and what Hugging Face ``datasets`` saves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.formats.saved_datasets import saved as saved

from bertkit.errors import BertkitError
from bertkit.formats.splits import find_splits, holds_tables, tables_of
from bertkit.user_tables.guess import guess


def write(path: Path, rows: int, start: int = 0) -> Path:
    lines = [f"film number {row},{('bad', 'good')[row % 2]}\n" for row in range(start, start + rows)]
    path.write_text("text,label\n" + "".join(lines))
    return path


@pytest.mark.parametrize("dev", ["dev", "validation", "valid", "val", "eval"])
def test_a_folder_has_a_file_for_each_split(dev: str, tmp_path: Path) -> None:
    write(tmp_path / "train.csv", 30)
    write(tmp_path / f"{dev}.csv", 7, start=50)
    write(tmp_path / "test.csv", 5, start=70)
    (tmp_path / "README.md").write_text("training data")
    task = guess(tmp_path).task
    assert [len(task.examples(split)) for split in ("train", "dev", "test")] == [30, 7, 5]


def test_given_files_replace_those_in_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", 30)
    write(tmp_path / "dev.csv", 7, start=50)
    other = write(tmp_path / "mine.csv", 3, start=60)
    assert len(guess(tmp_path, dev=other).task.examples("dev")) == 3


def test_the_shards_of_a_split_are_read_in_order(tmp_path: Path) -> None:
    for part in range(3):
        write(tmp_path / f"train-{part:05}-of-00003.csv", 10, start=10 * part)
    rows = list(guess(tmp_path).task.reader.rows("train"))
    assert [each.first for each in rows] == [f"film number {row}" for row in range(30)]


def test_two_files_for_one_split_are_an_error(tmp_path: Path) -> None:
    for name in ("train.csv", "train.tsv"):
        write(tmp_path / name, 3)
    with pytest.raises(BertkitError, match=r"has more than one train: train.csv, train.tsv. Name one of them"):
        find_splits(tmp_path)


def test_a_part_of_a_table_that_is_missing_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "train-00000-of-00002.csv", 3)
    with pytest.raises(BertkitError, match=r"has train-00000-of-00002.csv, but not train-00001-of-00002.csv"):
        find_splits(tmp_path)
    write(tmp_path / "train-00001-of-00002.csv", 3)
    assert len(find_splits(tmp_path)["train"]) == 2
    write(tmp_path / "train.csv", 3)
    with pytest.raises(BertkitError, match=r"has more than one train: train-\*-of-00002.csv, train.csv. Name one"):
        find_splits(tmp_path)


def test_a_folder_without_train_is_an_error_that_lists_its_splits(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"has no train split. It has no train.csv"):
        find_splits(tmp_path)
    (saved / "dataset_dict.json").write_text('{"splits": ["validation", "extra"]}')
    with pytest.raises(BertkitError, match=r"imdb has no train split. It has validation, extra"):
        find_splits(saved)
    (saved / "dataset_dict.json").write_text('{"splits": 7}')
    with pytest.raises(BertkitError, match=r"dataset_dict.json does not name its splits"):
        find_splits(saved)


def test_folders_with_a_train_split_hold_tables(saved: Path, tmp_path: Path) -> None:
    assert holds_tables(saved)
    assert holds_tables(saved / "test")
    assert not holds_tables(tmp_path)
    assert tables_of(saved, "dev") == [saved / "validation"]
    assert tables_of(saved / "test", "dev") == [saved / "test"]
    with pytest.raises(BertkitError, match=r"has no dev split. It has no tables"):
        tables_of(tmp_path, "dev")


def test_folders_of_texts_for_each_label_are_splits(tmp_path: Path) -> None:
    """As IMDB's reviews have them, with lists of addresses beside the folders of labels."""
    for split in ("train", "test"):
        for label in ("neg", "pos"):
            (tmp_path / split / label).mkdir(parents=True)
            (tmp_path / split / label / "0_1.txt").write_text(f"{label} of {split}")
        (tmp_path / split / f"urls_{label}.txt").write_text("http://example.org")
    assert find_splits(tmp_path) == {"train": [tmp_path / "train"], "test": [tmp_path / "test"]}
    assert find_splits(tmp_path / "train") == {"train": [tmp_path / "train"]}
    assert tables_of(tmp_path, "test") == [tmp_path / "test"] == tables_of(tmp_path / "test", "dev")
    assert holds_tables(tmp_path)
    assert holds_tables(tmp_path / "test")
    assert not holds_tables(tmp_path / "test" / "neg")


def test_a_list_of_records_is_a_split(tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text(json.dumps([{"text": "a film", "label": "good"}] * 3))
    assert find_splits(tmp_path) == {"train": [tmp_path / "train.json"]}


def test_names_of_files_may_be_in_capitals(tmp_path: Path) -> None:
    write(tmp_path / "train.CSV", 3)
    write(tmp_path / "Dev.csv", 3)
    assert find_splits(tmp_path) == {"train": [tmp_path / "train.CSV"], "dev": [tmp_path / "Dev.csv"]}


def test_columns_of_tags_are_files_of_splits(tmp_path: Path) -> None:
    for split in ("train", "dev"):
        (tmp_path / f"{split}.conll").write_text("a O\nb B-X\n", encoding="utf-8")
    assert find_splits(tmp_path) == {split: [tmp_path / f"{split}.conll"] for split in ("train", "dev")}
