"""New input may have its texts in any columns: named, known from the training, or guessed and said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bertkit.batch import Feature
from bertkit.contracts import Encoder, Objective, OutputArrays, Tokenizer
from bertkit.errors import BertkitError
from bertkit.task_types import (
    Columns,
    FileTask,
    MultiLabelTask,
    Split,
    TaggingTask,
    TaskFiles,
    TextClassificationTask,
    TextExample,
    TextReader,
)
from bertkit.task_types.similarity import SimilarityTask
from bertkit.user_tables.input_columns import choose_columns, with_encoding

OTHERS_FOLDER = TextClassificationTask(name="theirs", metric="accuracy", labels=("x", "y"))


def known(*, pair: bool = False) -> TextClassificationTask:
    """A task whose training had the columns nr, review and label, or further opinion."""
    columns = Columns(first="review", second="opinion" if pair else None, label="label", id="nr")
    files = TaskFiles(splits={"train": Split(files=(), columns=columns)})
    return TextClassificationTask(name="ours", metric="accuracy", labels=("x", "y"), pair=pair, files=files)


def write(folder: Path, content: str, name: str = "in.csv") -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("task", "content", "named", "example", "sentence"),
    [
        (known(), "nr,review\n5,a b\n", {}, TextExample("5", "a b"), ""),
        (known(), "comment\na b\n", {}, TextExample("2", "a b"), "in.csv: text = comment"),
        (known(), "nr,comment\n5,a b\n", {"text": "comment"}, TextExample("5", "a b"), ""),
        (known(), "nr,ref,comment\n5,k,a b\n", {"text": "comment", "id": "ref"}, TextExample("k", "a b"), ""),
        (known(), "id,review\nq7,a b\n", {}, TextExample("q7", "a b"), "in.csv: id = id"),
        (known(), "nr,id,review\n5,q7,a b\n", {}, TextExample("5", "a b"), ""),
        (known(), "uid,comment\nq7,a b\n", {"text": "comment"}, TextExample("q7", "a b"), ""),
        (known(pair=True), "q,a\nb,c\n", {"text": "q", "pair": "a"}, TextExample("2", "b", "c"), ""),
        (OTHERS_FOLDER, "id,said\n5,a b\n", {}, TextExample("5", "a b"), "in.csv: text = said, id = id"),
        (OTHERS_FOLDER, "text,pair\na b,c\n", {}, TextExample("2", "a b", "c"), "in.csv: text = text, pair = pair"),
        (OTHERS_FOLDER, "text,pair\na b,c\n", {"text": "text"}, TextExample("2", "a b"), ""),
        (OTHERS_FOLDER, "q,a\nb,c\n", {"text": "a", "pair": "q"}, TextExample("2", "c", "b"), ""),
        (
            OTHERS_FOLDER,
            "premise,hypothesis,gold_label\na b,c,x\n",
            {},
            TextExample("2", "a b", "c"),
            "in.csv: text = premise, pair = hypothesis",
        ),
    ],
)
def test_the_columns_of_new_input(
    task: TextClassificationTask,
    content: str,
    named: dict[str, str],
    example: TextExample,
    sentence: str,
    tmp_path: Path,
) -> None:
    path = write(tmp_path, content)
    found, said = choose_columns(task, path, text=named.get("text"), pair=named.get("pair"), id=named.get("id"))
    assert list(found.reader.read(path)) == [example]
    assert said == sentence


def test_the_columns_of_pairs_that_are_compared(tmp_path: Path) -> None:
    columns = Columns(first="text1", second="text2", label="score")
    task = SimilarityTask(name="pairs", files=TaskFiles(splits={"train": Split(files=(), columns=columns)}))
    path = write(tmp_path, "id,left,right\n5,a b,c\n")
    found, _ = choose_columns(task, path, text="left", pair="right")
    assert list(found.reader.read(path)) == [TextExample("5", "a b", "c")]
    opened = found.reader.open_table(path)
    assert opened is not None
    assert opened[1].id == "id"
    with pytest.raises(BertkitError, match='no column "text2"'):
        choose_columns(task, path)


def test_labelled_input_of_a_model_from_elsewhere(tmp_path: Path) -> None:
    path = write(tmp_path, "premise,hypothesis,label\n" + "a b,c,x\nd,e f,y\n" * 3)
    task, said = choose_columns(OTHERS_FOLDER, path, labelled=True)
    assert isinstance(task, TextClassificationTask) and task.pair
    assert said == "in.csv: text = premise, pair = hypothesis, label = label"
    examples = task.with_files(dev=[path]).examples("dev")
    assert examples[0] == TextExample("2", "a b", "c", "x")


def test_the_label_may_have_another_name_than_in_training(tmp_path: Path) -> None:
    path = write(tmp_path, "comment,verdict,n\na b,x,1\nc,y,2\n")
    task, _ = choose_columns(known(), path, text="comment", label="verdict", labelled=True)
    assert [each.label for each in task.with_files(dev=[path]).examples("dev")] == ["x", "y"]
    with pytest.raises(BertkitError, match=r'no column "label".*Name that of the label with --label COLUMN, or'):
        choose_columns(known(), path, text="comment", labelled=True)


def test_the_label_column_that_a_table_lacks_is_named(tmp_path: Path) -> None:
    columns = Columns(first="review", labels=("dull", "long", "odd"))
    task = MultiLabelTask(
        name="ours", labels=columns.labels, files=TaskFiles(splits={"train": Split(files=(), columns=columns)})
    )
    path = write(tmp_path, "review,dull,odd\na b,1,0\n")
    with pytest.raises(BertkitError, match='has no column "long"'):
        choose_columns(task, path, labelled=True)
    with pytest.raises(BertkitError, match="--label names no column for long: give the columns of all labels"):
        choose_columns(task, path, label="dull,odd", labelled=True)


@pytest.mark.parametrize(
    ("task", "content", "named", "message"),
    [
        (known(), "nr,review\n5,a b\n", {"id": "mr"}, 'no column "mr". Its columns: nr, review'),
        (known(), "nr,review\n5,a b\n", {"pair": "review"}, "ours is a task on one text: leave out --pair"),
        (known(), "when,comment\n5,a b\n", {}, r'has no column "review".*Name it with --text comment\.'),
        (known(), "A fine film\nA poor film\n", {}, 'has no column "review". Its columns: A fine film'),
        (known(pair=True), "review\na b\n", {}, 'has no column "opinion".*Name that of the second text: --pair COLUMN'),
        (known(), "label\ngood\n", {}, "no column that looks like text. Its columns: label. Name it: --text COLUMN"),
        (OTHERS_FOLDER, "n\n5\n", {}, "no column that looks like text"),
        (
            TextClassificationTask(name="nli", metric="accuracy", labels=("x", "y"), pair=True),
            "said\na b\n",
            {},
            "nli needs two texts, and .*in.csv has one: name the second with --pair COLUMN",
        ),
    ],
)
def test_input_that_does_not_fit_is_an_error(
    task: TextClassificationTask, content: str, named: dict[str, str], message: str, tmp_path: Path
) -> None:
    path = write(tmp_path, content)
    with pytest.raises(BertkitError, match=message):
        choose_columns(task, path, text=named.get("text"), pair=named.get("pair"), id=named.get("id"))


def test_names_of_columns_are_for_tables_of_texts(tmp_path: Path) -> None:
    lines = write(tmp_path, "a b\n", "in.txt")
    assert choose_columns(OTHERS_FOLDER, lines) == (OTHERS_FOLDER, "")
    for task in (OTHERS_FOLDER, TaggingTask(name="tags", labels=("O", "B-x", "I-x"))):
        with pytest.raises(BertkitError, match=r"leave out --text\."):
            choose_columns(task, lines, text="text")


@dataclass(frozen=True, kw_only=True)
class OwnFormatTask(TextClassificationTask):
    """A task whose files are no tables."""

    @property
    def reader(self) -> TextReader:
        reader = super().reader
        return OwnFormatReader(name=reader.name, files=reader.files, pair=reader.pair, read_label=reader.read_label)


@dataclass(frozen=True, kw_only=True)
class OwnTask(FileTask):
    """A task of texts that is written from nothing: what is not used here is not written."""

    @property
    def reader(self) -> TextReader:
        return TextReader(name=self.name, files=self.files, pair=False, read_label=lambda cell, where: cell)

    def encode(self, example: Any, tokenizer: Tokenizer) -> list[Feature]:
        raise NotImplementedError

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        raise NotImplementedError

    def decode(self, example: Any, features: Sequence[Feature], outputs: Sequence[OutputArrays]) -> Any:
        raise NotImplementedError

    def describe(self, example: Any, prediction: Any) -> dict[str, Any]:
        raise NotImplementedError

    def score(self, examples: Iterable[Any], predictions: Iterable[Any]) -> dict[str, float]:
        raise NotImplementedError


def test_a_task_that_reads_texts_as_bertkit_does_takes_names_of_columns(tmp_path: Path) -> None:
    task = OwnTask(name="own", metric="accuracy", files=known().files)
    path = write(tmp_path, "body,other\na b,c\n")
    found, _ = choose_columns(task, path, text="body")
    assert isinstance(found, OwnTask)
    assert [each.first for each in found.reader.read(path)] == ["a b"]
    with pytest.raises(BertkitError, match=r"own is a task on one text: leave out --pair\."):
        choose_columns(task, path, text="body", pair="other")


class OwnFormatReader(TextReader):
    """As a user writes it: ``read`` and ``rows`` would parse the file."""

    def open_table(self, path: Path) -> None:
        return None


def test_a_reader_that_opens_no_table_reads_new_input_itself(tmp_path: Path) -> None:
    task = OwnFormatTask(name="blocks", metric="accuracy", labels=("x", "y"), files=known().files)
    path = write(tmp_path, "LABEL: x\na b\n", "in.blk")
    assert choose_columns(task, path) == (task, "")
    with pytest.raises(BertkitError, match=r"in\.blk has no columns: leave out --text\."):
        choose_columns(task, path, text="text")


def test_new_input_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes("nr,review\n5,un café\n".encode("cp1252"))
    task = with_encoding(known(), "cp1252")
    assert list(task.reader.read(path)) == [TextExample("5", "un café")]
    assert with_encoding(task, None) == known()
    lines = tmp_path / "in.txt"
    lines.write_bytes("un café\n".encode("cp1252"))
    assert [example.first for example in task.reader.read(lines)] == ["un café"]


def test_an_encoding_is_for_tables_of_texts() -> None:
    with pytest.raises(BertkitError, match="--encoding is for tables of texts; tags reads other files"):
        with_encoding(TaggingTask(name="tags", labels=("O", "B-X", "I-X")), "cp1252")
