"""Sentences with tags, and what is reported about them."""

from __future__ import annotations

from pathlib import Path

from tests.task_types.small_sentences import task as task

from bertkit.task_types import TaggingTask, from_record


def test_columns_are_read_as_sentences_in_iob2(task: TaggingTask) -> None:
    first, second, third = task.examples("train")
    assert first.words == ("Seven", "rivers", "ran")
    assert first.label == ("B-PER", "I-PER", "O")
    assert second.label == ("B-LOC", "B-LOC")
    assert [each.id for each in (first, second, third)] == ["3", "7", "12"]
    assert [len(list(task.reader.read(task.files.paths("", "dev")[0]))), from_record(task.record())] == [3, task]


def test_marks_stay_with_their_letter(task: TaggingTask) -> None:
    assert task.reader.read_line("1", "Cafe\u0301 de Flore, हिन्दी").words == ("Cafe\u0301", "de", "Flore", ",", "हिन्दी")


def test_ill_formed_tags_and_unreadable_words_are_counted(task: TaggingTask, tmp_path: Path) -> None:
    rows = "a B-PER\nb I-PER\nc O\nd I-PER\n\u200b O\n"
    (tmp_path / "eng.train").write_text(rows, encoding="utf-8")
    notes = " ".join(task.reader.notes())
    assert "1 tag of train is ill-formed" in notes
    assert "1 word of train has no character" in notes
    assert "of dev" not in notes


def test_a_txt_file_with_tags_is_no_file_of_texts(task: TaggingTask, tmp_path: Path) -> None:
    path = tmp_path / "new.txt"
    path.write_text("Seven B-PER\nrivers I-PER\n\nran O\n", encoding="utf-8")
    assert [each.words for each in task.reader.read(path)] == [("Seven", "rivers"), ("ran",)]
    path.write_text("Seven rivers ran.\n", encoding="utf-8")
    assert [each.words for each in task.reader.read(path)] == [("Seven", "rivers", "ran", ".")]
