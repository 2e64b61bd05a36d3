"""A folder of text files for each label, read as a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.formats.tables import Table
from bertkit.storage.locations import is_text_folder
from bertkit.user_tables.guess import guess


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """Two groups of 20 Newsgroups, whose files have no suffix, with what else lies there."""
    for label in ("alt.atheism", "sci.space"):
        folder = tmp_path / "news" / label
        folder.mkdir(parents=True)
        for number in range(20):
            (folder / str(49960 + number)).write_text(f"Subject: {label} {number}\n\nTwo\nlines.\n")
    (tmp_path / "news" / "README.md").write_text("20 Newsgroups")
    (tmp_path / "news" / "sci.space" / ".cache").write_text("hidden")
    (tmp_path / "news" / "pictures").mkdir()
    (tmp_path / "news" / "pictures" / "moon.png").write_bytes(b"\x89PNG")
    return tmp_path / "news"


def test_each_file_is_a_row_with_its_text_and_its_label(groups: Path) -> None:
    rows = list(Table(groups).rows("id", "label", "text"))
    assert len(rows) == 40
    assert rows[0].cells == ["alt.atheism/49960", "alt.atheism", "Subject: alt.atheism 0\n\nTwo\nlines."]
    assert rows[-1].cells[:2] == ["sci.space/49979", "sci.space"]
    assert Table(groups).sample(1)[0][0] == "alt.atheism/49960"


def test_a_classifier_is_made_of_it(groups: Path) -> None:
    found = guess(groups)
    assert found.sentence == "text = text, label = label (2 classes: alt.atheism 20, sci.space 20), id = id"
    train, dev = (found.task.examples(split) for split in ("train", "dev"))
    assert (len(train), len(dev)) == (36, 4)
    assert {each.label for each in dev} == {"alt.atheism", "sci.space"}


def test_another_encoding_can_be_named(groups: Path) -> None:
    (groups / "sci.space" / "50000").write_bytes("Städte".encode("latin-1"))
    with pytest.raises(BertkitError, match=r"sci\.space/50000, line 1: byte 3 of the line is not UTF-8"):
        list(Table(groups).rows("text"))
    assert list(Table(groups, encoding="latin-1").rows("text"))[-1].cells == ["Städte"]


def test_the_unlabelled_reviews_of_imdb_are_no_class(groups: Path) -> None:
    (groups / "unsup").mkdir()
    (groups / "unsup" / "0_0.txt").write_text("a review")
    assert {row.cells[0] for row in Table(groups).rows("label")} == {"alt.atheism", "sci.space"}


def test_the_end_of_a_name_may_be_in_capitals(tmp_path: Path) -> None:
    for label in ("good", "bad"):
        (tmp_path / label).mkdir()
        (tmp_path / label / "1.TXT").write_text("a review")
    assert {row.cells[0] for row in Table(tmp_path).rows("label")} == {"bad", "good"}


def test_a_folder_with_a_link_to_itself_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "LICENSE").write_text("a text")
    (tmp_path / "self").symlink_to(tmp_path)
    (tmp_path / "again").symlink_to(tmp_path)
    assert not is_text_folder(tmp_path)


def test_an_empty_file_is_named(groups: Path) -> None:
    (groups / "alt.atheism" / "49963").write_text(" \n")
    with pytest.raises(BertkitError, match=r"alt\.atheism/49963 is empty\. Delete it\."):
        list(Table(groups).rows("text"))
