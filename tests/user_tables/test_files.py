"""The files of a user: which splits have labels, what is unusual about them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.task_types.small_tables import here as here
from tests.task_types.small_tables import reviews, sentence, write_csv

from bertkit.errors import BertkitError
from bertkit.task_types import TextExample
from bertkit.user_tables.guess import guess


def test_columns_that_are_not_read_are_named(here: Path) -> None:
    path = here / "t.csv"
    rows = [(f"title {row}", sentence(row), "ab"[row % 2]) for row in range(60)]
    path.write_text("title,text,label\n" + "".join(f"{','.join(row)}\n" for row in rows))
    assert guess(path).sentence.endswith("; not read: title")


def test_a_test_file_needs_no_labels(here: Path) -> None:
    train = write_csv(here / "train.csv", reviews(40))
    (here / "test.csv").write_text(f"review\n{sentence(3)}\n", encoding="utf-8")
    (example,) = guess(train, test=here / "test.csv").task.examples("test")
    assert example == TextExample("2", sentence(3))


@pytest.mark.parametrize("labelled", [0, 1])
def test_a_part_of_the_test_set_without_labels_is_refused(here: Path, labelled: int) -> None:
    (here / "d").mkdir()
    write_csv(here / "d" / "train.csv", reviews(40))
    for part in range(2):
        rows = f"review,label\n{sentence(3)},positive\n" if part == labelled else f"review\n{sentence(4)}\n"
        (here / "d" / f"test-{part:05}-of-00002.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(BertkitError, match=f'test-0000{1 - labelled}-of-00002.csv has no column "label"'):
        guess(here / "d")


def test_a_file_without_column_names_is_read_from_its_first_line(here: Path) -> None:
    rows = [f'{1 + row % 2},"{sentence(row)}"' for row in range(20)]
    (here / "nameless.csv").write_text("\n".join(rows), encoding="utf-8")
    found = guess(here / "nameless.csv")
    assert found.sentence == (
        "text = 2, label = 1 (2 classes: 1 10, 2 10); there is no line of column names, so the columns are numbered"
    )
    assert len(found.task.examples("train")) + len(found.task.examples("dev")) == 20


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.csv", "question,context,answer\nCaf\u00e9?,the caf\u00e9,caf\u00e9\n"),
        ("t.conll", "Caf\u00e9 B-LOC\nis O\n\n"),
    ],
)
def test_an_encoding_is_refused_for_questions_and_tags(tmp_path: Path, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode("cp1252") * 9)
    with pytest.raises(BertkitError, match=r"--encoding is for tables of texts; .* iconv -f cp1252 -t UTF-8"):
        guess(path, encoding="cp1252")


@pytest.mark.parametrize(("label", "known"), [("-1", None), ("0", "0")])
def test_a_test_split_of_minus_ones_has_no_labels(here: Path, label: str, known: str | None) -> None:
    train = write_csv(here / "train.csv", [(str(row), sentence(row), str(row % 2)) for row in range(40)])
    test = write_csv(here / "test.csv", [(str(row), sentence(99 + row), label) for row in range(9)])
    task = guess(train, test=test).task
    assert {example.label for example in task.examples("test")} == {known}
