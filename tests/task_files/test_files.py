"""The files of the splits of a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.formats.tables import Table
from bertkit.task_files.files import Columns, read_cells
from bertkit.tasks import glue


def test_a_missing_file_names_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"train.tsv does not exist. glue:rte expects dev.tsv, test.tsv, train.tsv"):
        glue.rte.at(tmp_path).examples("train")


def test_the_folder_above_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "RTE").mkdir()
    (tmp_path / "RTE" / "train.tsv").touch()
    with pytest.raises(BertkitError, match=r"Did you mean .*/RTE\?"):
        glue.rte.at(tmp_path).examples("train")


def test_an_unknown_split_lists_those_there_are() -> None:
    with pytest.raises(BertkitError, match=r"glue:rte has no devel split. It has: train, dev, test"):
        glue.rte.examples("devel")


def test_other_files_may_be_given_and_write_names_for_labels(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text('label,sentence\nnegative,"dull, and long"\n1,fine\n', encoding="utf-8")
    examples = glue.sst2.with_files(dev=[tmp_path / "mine.csv"]).examples("dev")
    assert [(each.first, each.label) for each in examples] == [("dull, and long", "negative"), ("fine", "positive")]


def test_other_files_of_the_same_kind_are_read_as_the_tasks_own(tmp_path: Path) -> None:
    (tmp_path / "mine.tsv").write_text('sentence\tlabel\n"so"\t1\n', encoding="utf-8")
    (example,) = glue.sst2.with_files(dev=[tmp_path / "mine.tsv"]).examples("dev")
    assert example.first == '"so"'


def test_a_list_is_no_text_and_may_be_labels(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "a river", "label": ["a"]}\n{"text": ["a", "b"], "label": ["a"]}\n')
    rows = read_cells(Table(path), Columns(first="text", label="label"))
    assert next(rows).label == '["a"]'
    with pytest.raises(BertkitError, match=r't\.jsonl, line 2: "text" is \["a", "b"\], not a text\.$'):
        next(rows)
