"""The files that a caller names."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bertkit.api.paths import existing, existing_texts, optional_path
from bertkit.errors import BertkitError


class FolderEntry(os.PathLike[str]):
    """A path of a library that has its own class for them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "reviews.csv"
    path.write_text("x")
    return path


def test_files_may_be_text_or_paths(file: Path) -> None:
    assert existing([str(file), file]) == [file, file]
    assert optional_path(str(file)) == optional_path(FolderEntry(file)) == file
    assert optional_path(None) is None


def test_a_missing_file_is_refused_with_the_most_similar_name(file: Path) -> None:
    wrong = file.with_name("review.csv")
    with pytest.raises(BertkitError, match=re.escape(f"no file at {wrong}. Did you mean {file}?")):
        existing([file, wrong])


def test_a_folder_is_refused(file: Path) -> None:
    with pytest.raises(BertkitError, match="is a folder; name its files"):
        existing([file.parent])


def test_at_least_one_file_is_needed() -> None:
    with pytest.raises(BertkitError, match="name at least one text file"):
        existing([])


def test_a_folder_of_texts_is_its_files(file: Path) -> None:
    text = file.parent / "folder" / "a.txt"
    text.parent.mkdir()
    text.write_text("x")
    assert existing_texts([str(text.parent), str(text)]).files == (text, text)
    with pytest.raises(BertkitError, match="no file at"):
        existing_texts([file.parent / "none"])
    with pytest.raises(BertkitError, match="name at least one text file"):
        existing_texts([])
