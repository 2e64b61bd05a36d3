"""Entities as spans of characters."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.task_files.entity_spans import Span, locate_words, split_words, tag_words
from bertkit.task_types import TaggingTask
from bertkit.task_types.tag_reader import TagExample
from bertkit.user_tables.guess import guess

TEXT = "Ada Byron came to Old-York, Ada said."
SPANS = [[0, 9, "PER"], [18, 26, "LOC"], [28, 31, "PER"]]
TAGS = ("B-PER", "I-PER", "O", "O", "B-LOC", "I-LOC", "I-LOC", "O", "B-PER", "O", "O")


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "spans"),
    [
        ("entities", SPANS),
        ("label", SPANS),
        ("spans", [{"start": start, "end": end, "label": type} for start, end, type in SPANS]),
        ("labels", [{"start": start, "end": end, "type": type, "text": "x"} for start, end, type in SPANS]),
    ],
)
def test_the_layouts_of_other_programs_are_words_with_tags(tmp_path: Path, name: str, spans: object) -> None:
    rows = [
        {"id": 7, "text": "No one.", name: []},
        {"id": 8, "text": TEXT, name: spans},
        {"id": 9, "text": "", name: []},
    ]
    task = guess(write(tmp_path / "t.jsonl", rows)).task
    assert isinstance(task, TaggingTask)
    assert task.labels == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    first, second = task.reader.rows("train")
    assert (first.id, first.label) == ("7", ("O", "O", "O"))
    assert (second.id, second.label, second.first) == ("8", TAGS, TEXT)
    assert [second.places[word] for word in (0, 4)] == [(0, 3), (18, 21)]


def test_null_is_an_answer_that_is_not_known(tmp_path: Path) -> None:
    rows = [{"text": f"Ada was {n}", "entities": [[0, 3, "PER"]] if n < 9 else None} for n in range(12)]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = guess(path).task
    assert len(task.examples("train")) + len(task.examples("dev")) == 9
    assert "3 rows of train have no label and are left out" in task.reader.notes()


def test_new_texts_need_no_entities(tmp_path: Path) -> None:
    task = guess(write(tmp_path / "t.jsonl", [{"text": TEXT, "entities": SPANS}])).task
    (tmp_path / "new.csv").write_text(f'id,text\n3,"{TEXT}"\n', encoding="utf-8")
    (example,) = task.reader.read(tmp_path / "new.csv")
    assert (example.id, example.label, example.words) == ("3", None, split_words(TEXT))


def test_a_word_belongs_to_an_entity_that_covers_a_part_of_it() -> None:
    places = locate_words("two NewYorkers", split_words("two NewYorkers"))
    assert tag_words("two NewYorkers", places, [Span(4, 11, "LOC")], "here") == (
        "O",
        "B-LOC",
    )


def test_entities_may_end_anywhere_in_scripts_without_spaces(tmp_path: Path) -> None:
    texts = {"今天他离开了北京，非常好。": (6, 8), "วันนี้เขาไปกรุงเทพ": (11, 18), "ｱﾀﾞ and アダが来た": (8, 10)}
    rows = [{"text": text, "entities": [[*place, "X"]]} for text, place in texts.items()] * 5
    task = guess(write(tmp_path / "t.jsonl", rows)).task
    for example in task.reader.rows("train"):
        assert isinstance(example, TagExample) and example.label is not None
        tagged = [place for place, tag in zip(example.places, example.label, strict=True) if tag != "O"]
        assert (tagged[0][0], tagged[-1][1]) == texts[example.first]
    assert not any("inside of a word" in note for note in task.reader.notes())


def test_entities_that_end_inside_of_words_are_counted(tmp_path: Path) -> None:
    rows = [{"text": f"gave {n}mg twice", "entities": [[6, 8, "UNIT"], [9, 14, "HOW"]]} for n in range(9)]
    notes = guess(write(tmp_path / "t.jsonl", rows)).task.reader.notes()
    assert "9 spans of train begin or end inside of a word, and the whole word is taken" in notes


def test_two_entities_side_by_side_are_two() -> None:
    assert tag_words("Ada Ben", [(0, 3), (4, 7)], [Span(4, 7, "PER"), Span(0, 3, "PER")], "here") == ("B-PER", "B-PER")


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        (
            [[0, 9, "PER"], [4, 9, "PER"]],
            r"line 1: \[0, 9, 'PER'\] and \[4, 9, 'PER'\] overlap\. A word has",
        ),
        ([[18, 20, "A"], [20, 21, "B"]], r"line 1: \[18, 20, 'A'\] and \[20, 21, 'B'\] share the word \"Old\""),
        ([[9, 10, "PER"]], r"line 1: the entity \[9, 10, 'PER'\] has no word"),
        ([[30, 99, "PER"]], r"line 1: the entity \[30, 99, 'PER'\] is not inside of its text of 37 characters"),
        ([[3, 3, "PER"]], "is not inside of its text"),
        ([[0, 3, "Full Name"]], 'line 1: the type "Full Name" has a space; write Full_Name'),
    ],
)
def test_a_wrong_span_is_an_error_with_its_line(tmp_path: Path, spans: object, message: str) -> None:
    with pytest.raises(BertkitError, match=message):
        guess(write(tmp_path / "t.jsonl", [{"text": TEXT, "entities": spans}]))


def test_a_row_with_another_value_is_named(tmp_path: Path) -> None:
    rows = [{"text": TEXT, "entities": SPANS}] * 100 + [{"text": TEXT, "entities": [["Ada", "PER"]]}]
    with pytest.raises(BertkitError, match=r'line 101: "entities" is \[\["Ada", "PER"\]\], not a list of spans'):
        guess(write(tmp_path / "t.jsonl", rows))


@pytest.mark.parametrize("spans", ["x", 5, [[0, 3, None]], [[0, 3, " "]], [[True, 3, "PER"]], [[0.5, 3, "PER"]]])
def test_one_wrong_row_does_not_make_the_spans_of_all_others_classes(tmp_path: Path, spans: object) -> None:
    rows: list[dict[str, object]] = [{"text": TEXT, "entities": SPANS}] * 20
    with pytest.raises(BertkitError, match=r'line 21: "entities" is .*, not a list of spans'):
        guess(write(tmp_path / "t.jsonl", [*rows, {"text": TEXT, "entities": spans}, *rows]))
