"""A user's own words with tags."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.task_types.small_tables import fails
from tests.task_types.small_tables import here as here

from bertkit.errors import BAD_DATA, BertkitError
from bertkit.task_types import TaggingTask
from bertkit.user_tables.guess import guess


def test_bare_tags_make_a_task_and_are_not_mixed_with_types(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a B\nb I\nc O\n\nd B\ne O\n", encoding="utf-8")
    found = guess(tmp_path / "t.txt")
    assert found.task.labels == ("O", "B", "I")
    assert "entity" in found.sentence
    (tmp_path / "t.txt").write_text("a B\nb I-PER\nc O\n\nd B-PER\ne O\n", encoding="utf-8")
    with pytest.raises(BertkitError, match=r"1 entities have bare tags such as B, and 2 have a type, such as B-PER"):
        guess(tmp_path / "t.txt")


def test_a_users_file_of_tags_becomes_a_task(tmp_path: Path) -> None:
    own = tmp_path / "my.conll"
    own.write_text("".join(f"w{n} S-ANIMAL\nx{n} O\n\n" for n in range(37)), encoding="utf-8")
    found = guess(own)
    assert isinstance(found.task, TaggingTask)
    assert found.task.labels == ("O", "B-ANIMAL", "I-ANIMAL")
    assert "37 sentences" in found.sentence
    assert len(found.task.examples("dev")) > 0
    assert "held out" in found.task.reader.notes()[0]


def test_a_tsv_in_another_encoding_is_guessed_as_the_csv_is(tmp_path: Path) -> None:
    rows = [("Catégorie", "text"), *((kind, f"a {kind} day") for kind in ("gai", "été") for _ in range(9))]
    for suffix, mark in ((".csv", ","), (".tsv", "\t")):
        path = tmp_path / f"t{suffix}"
        path.write_text("".join(f"{mark.join(row)}\n" for row in rows), encoding="cp1252")
        assert guess(path, label="Catégorie", encoding="cp1252").task.labels == ("gai", "été")


@pytest.mark.parametrize("beginning", ["", "-DOCSTART- O\n\n"])
def test_words_may_be_quotation_marks(tmp_path: Path, beginning: str) -> None:
    (tmp_path / "t.conll").write_text(beginning + '" O\nAda B-PER\n" O\n\n' * 20, encoding="utf-8")
    assert guess(tmp_path / "t.conll").task.labels == ("O", "B-PER", "I-PER")


def test_a_file_without_an_entity_is_refused(here: Path) -> None:
    (here / "t.conll").write_text("a O\nb O\n\n", encoding="utf-8")
    fails("every word has the tag O. There must be at least one entity", BAD_DATA, here / "t.conll")


def test_numbers_in_place_of_words_are_refused(here: Path) -> None:
    (here / "t.conll").write_text("1 B-PER\n2 O\n\n", encoding="utf-8")
    fails("the first column has numbers alone, and no words. Words come first", BAD_DATA, here / "t.conll")


def test_words_without_an_empty_line_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.conll").write_text("a B-PER\nb O\n" * 60, encoding="utf-8")
    with pytest.raises(BertkitError, match=r"one sentence of 120 words\. Put an empty line after each sentence"):
        guess(tmp_path / "t.conll")
