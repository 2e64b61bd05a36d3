"""New texts and pairs of texts, and rows without a label."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.task_types.small_tables import here as here
from tests.task_types.small_tables import reviews, sentence, write_csv

from bertkit.errors import BertkitError
from bertkit.task_types import Columns, Split, TaskFiles, TextClassificationTask, TextExample
from bertkit.user_tables.guess import guess


def test_rows_without_a_label_are_left_out_and_counted(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews(40, row_3="", row_8=" "))).task
    assert len(task.examples("train")) + len(task.examples("dev")) == 38
    assert "2 rows of train have no label and are left out" in task.reader.notes()


@pytest.mark.parametrize(
    ("name", "text", "first", "second"),
    [
        ("in.csv", "review,id\nShort and sweet,5\n", "Short and sweet", None),
        ("in.txt", "Short and sweet\n\n", "Short and sweet", ""),
        ("IN.TXT", "Short and sweet\n\n", "Short and sweet", ""),
        ("in.jsonl", '{"review": "Short and sweet"}\n', "Short and sweet", None),
        ("in.csv", "review\nShort and sweet\n", "Short and sweet", None),
    ],
)
def test_new_input_is_read_by_the_task(name: str, text: str, first: str, second: str | None, here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews())).task
    (here / name).write_text(text, encoding="utf-8")
    examples = list(task.reader.read(here / name))
    assert [example.first for example in examples] == [first] if second is None else [first, second]
    assert all(example.label is None for example in examples)


def test_a_line_of_a_stream_has_a_tab_between_the_texts_of_a_pair() -> None:
    task = TextClassificationTask(name="pairs", metric="accuracy", labels=("x", "y"), pair=True)
    assert task.reader.read_line("7", "a river\ta mill") == TextExample("7", "a river", "a mill")
    with pytest.raises(BertkitError, match=r"^line 3: no tab\. Write the first text, a tab and the second text\.$"):
        task.reader.read_line("3", "a river")


def test_empty_texts_of_new_input_are_counted(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews())).task
    (here / "gaps.csv").write_text("id,review\n1,good\n2,\n3, \n")
    assert task.reader.inspect_input(here / "gaps.csv") == (
        3,
        ["2 rows of gaps.csv have an empty text; what is predicted for it says nothing"],
    )
    (here / "full.csv").write_text("id,review\n1,good\n")
    assert task.reader.inspect_input(here / "full.csv") == (1, [])


def test_new_input_without_the_column_is_refused(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews())).task
    (here / "in.csv").write_text("reviews,when\nGood,today\n", encoding="utf-8")
    with pytest.raises(BertkitError, match=r'in.csv has no column "review". .*Did you mean "reviews"\?'):
        list(task.reader.read(here / "in.csv"))


def test_a_first_line_without_the_task_s_columns_is_an_error(here: Path) -> None:
    task = guess(write_csv(here / "r.csv", reviews())).task
    (here / "in.csv").write_text("A fine film\nA poor film\n", encoding="utf-8")
    with pytest.raises(BertkitError, match=r'in.csv has no column "review". Its columns: A fine film'):
        list(task.reader.read(here / "in.csv"))


def test_a_task_without_files_reads_text_and_pair(here: Path) -> None:
    (here / "in.csv").write_text("id,pair,text\n1,b,a\n", encoding="utf-8")
    task = TextClassificationTask(name="pairs", metric="accuracy", labels=("x", "y"), pair=True)
    assert list(task.reader.read(here / "in.csv")) == [TextExample("2", "a", "b")]


def test_pairs_of_new_input_are_tab_separated_lines(here: Path) -> None:
    rows = [(sentence(row), sentence(row + 500), label) for row, (_, _, label) in enumerate(reviews())]
    task = guess(write_csv(here / "p.csv", rows, "premise,hypothesis,label")).task
    (here / "in.txt").write_text('One "thing\tand another\n', encoding="utf-8")
    assert list(task.reader.read(here / "in.txt")) == [TextExample("1", 'One "thing', "and another")]


def test_a_blank_line_among_pairs_is_no_answer_less(here: Path) -> None:
    (here / "in.txt").write_text("one\tanother\n\ntwo\tmore\n", encoding="utf-8")
    task = TextClassificationTask(name="pairs", metric="accuracy", labels=("x", "y"), pair=True)
    with pytest.raises(BertkitError, match=r"in\.txt, line 2: 1 cell, but 2 columns"):
        list(task.reader.read(here / "in.txt"))


def test_a_txt_with_the_columns_of_the_task_is_a_table(here: Path) -> None:
    files = TaskFiles(splits={"train": Split(files=(), columns=Columns(first="text", label="label"))})
    reader = TextClassificationTask(name="t", metric="accuracy", labels=("x", "y"), files=files).reader
    (here / "in.txt").write_text("text\tlabel\nOne thing\tgood\n", encoding="utf-8")
    assert list(reader.read(here / "in.txt")) == [TextExample("2", "One thing")]
    (here / "in.txt").write_text("text\nOne\tthing\n", encoding="utf-8")
    assert [example.first for example in reader.read(here / "in.txt")] == ["text", "One\tthing"]
