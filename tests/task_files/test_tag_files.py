"""Words and tags as lists in the rows of a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.formats.saved_datasets import TEXT, save

from bertkit.errors import BertkitError
from bertkit.task_files.tag_files import read_sentences
from bertkit.task_types import MultiLabelTask, TaggingTask
from bertkit.user_tables.guess import guess

_ROWS = (
    {"tokens": ["Ada", "came"], "ner_tags": ["B-PER", "O"]},
    {"tokens": ["in", "Old", "York"], "ner_tags": ["O", "B-LOC", "I-LOC"]},
)


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(("words", "tags"), [("tokens", "ner_tags"), ("Words", "Tags"), ("tokens", "labels")])
def test_lists_in_a_jsonl_make_the_task_of_the_same_columns(tmp_path: Path, words: str, tags: str) -> None:
    rows = [{"id": number, words: row["tokens"], tags: row["ner_tags"]} for number, row in enumerate(_ROWS)]
    found = guess(_write(tmp_path / "t.jsonl", rows))
    (tmp_path / "t.conll").write_text("Ada B-PER\ncame O\n\nin O\nOld B-LOC\nYork I-LOC\n", encoding="utf-8")
    same = guess(tmp_path / "t.conll")
    assert isinstance(found.task, TaggingTask)
    assert (found.task.labels, found.sentence) == (same.task.labels, same.sentence)
    examples = [list(guessed.task.reader.rows("train")) for guessed in (found, same)]
    assert [(each.words, each.label) for each in examples[0]] == [(each.words, each.label) for each in examples[1]]
    assert [each.id for each in examples[0]] == ["0", "1"]


def test_a_parquet_file_holds_the_same_sentences(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    parquet.write_table(arrow.Table.from_pylist(list(_ROWS)), tmp_path / "t.parquet")
    expected = list(read_sentences(_write(tmp_path / "t.jsonl", _ROWS)))
    assert list(read_sentences(tmp_path / "t.parquet")) == expected


def test_numbers_of_a_saved_dataset_are_read_by_their_names(tmp_path: Path) -> None:
    names = ["O", "B-PER", "B-LOC", "I-LOC"]
    columns: dict[str, Sequence[object]] = {
        "tokens": [row["tokens"] for row in _ROWS],
        "ner_tags": [[names.index(tag) for tag in row["ner_tags"]] for row in _ROWS],
    }
    tags = {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "Sequence"}
    folder = save(tmp_path / "train", columns, {"tokens": {"feature": TEXT, "_type": "Sequence"}, "ner_tags": tags})
    expected = list(read_sentences(_write(tmp_path / "t.jsonl", _ROWS)))
    assert list(read_sentences(folder)) == expected
    assert guess(folder).task.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


def test_with_columns_by_name_the_labels_beside_words_are_those_of_the_text(tmp_path: Path) -> None:
    rows = [{"text": f"Ada came {kind}", "tokens": ["Ada"], "labels": [kind]} for kind in ("news", "sport")]
    assert isinstance(guess(_write(tmp_path / "t.jsonl", rows), text="text", label="labels").task, MultiLabelTask)


def test_predictions_need_words_only(tmp_path: Path) -> None:
    path = _write(tmp_path / "new.jsonl", [{"tokens": ["Ada", "came"]}, {"tokens": []}, {"tokens": ["Go"]}])
    assert [(each.lines[0], each.words, each.tags) for each in read_sentences(path, tagged=False)] == [
        (1, ("Ada", "came"), ()),
        (2, (), ()),
        (3, ("Go",), ()),
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"tokens": ["a", "b"], "ner_tags": ["O"]}, r"t\.jsonl, line 3: 2 words and 1 tags. Every word needs a tag"),
        ({"tokens": ["a"], "ner_tags": ["PER"]}, r't\.jsonl, line 3: "PER" is not a tag'),
        ({"tokens": ["a"], "ner_tags": [3]}, r'line 3: "ner_tags" is \[3\], not a list of texts\. Write the names'),
        ({"tokens": "a", "ner_tags": ["O"]}, r'line 3: "tokens" is a, not a list of texts\.$'),
        ({"tokens": ["a"]}, "line 3"),
    ],
)
def test_a_faulty_row_is_an_error_with_its_line(tmp_path: Path, row: Mapping[str, object], message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        guess(_write(tmp_path / "t.jsonl", [*_ROWS, row]))


def test_an_unknown_tag_is_named_with_the_line_of_its_row(tmp_path: Path) -> None:
    task = guess(_write(tmp_path / "t.jsonl", _ROWS)).task
    _write(tmp_path / "t.jsonl", [*_ROWS, {"tokens": ["a", "b"], "ner_tags": ["O", "B-ORG"]}])
    with pytest.raises(BertkitError, match=r't\.jsonl, line 3: unknown tag "B-ORG"'):
        list(task.reader.rows("train"))


def test_sentences_of_a_table_have_its_ids(tmp_path: Path) -> None:
    rows = [{"id": f"s{row}", "tokens": ["Ada", "lives"], "ner_tags": ["B-PER", "O"]} for row in range(3)]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = TaggingTask(name="t", labels=("O", "B-PER", "I-PER"))
    assert [example.id for example in task.reader.read(path)] == ["s0", "s1", "s2"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", 'id,text\na,Ada left\nb,""\nc,x\n'),
        (
            "t.jsonl",
            '{"id": "a", "tokens": ["Ada", "left"]}\n{"id": "b", "tokens": []}\n{"id": "c", "tokens": ["x"]}\n',
        ),
    ],
)
def test_a_row_of_new_input_without_words_is_kept(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    task = TaggingTask(name="tags", labels=("O", "B-X"))
    found = [(each.id, each.words) for each in task.reader.read(tmp_path / name)]
    assert found == [("a", ("Ada", "left")), ("b", ()), ("c", ("x",))]
