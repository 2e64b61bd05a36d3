"""The files that a caller names."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from bertkit.api.paths import optional_path, text_files
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


def test_a_path_may_be_of_any_class(file: Path) -> None:
    assert optional_path(str(file)) == optional_path(FolderEntry(file)) == file
    assert optional_path(None) is None


def test_a_folder_of_texts_is_its_files(file: Path) -> None:
    text = file.parent / "folder" / "a.txt"
    text.parent.mkdir()
    text.write_text("x")
    assert text_files([str(text.parent), str(text)]).files == (text, text)
    with pytest.raises(BertkitError, match="has no file of text"):
        text_files([Path(tempfile.mkdtemp(dir=file.parent))])
