"""A folder with one folder of text files for each label, as a table: the layout of 20 Newsgroups and of IMDB's reviews.

scikit-learn's ``load_files`` and Keras' ``text_dataset_from_directory`` read the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bertkit.errors import data_error
from bertkit.formats.lines import Lines
from bertkit.storage.locations import is_text, label_folders

COLUMNS = ("id", "text", "label")
"""The path of the file in the folder, its text, and the name of the folder that it is in."""


def text_rows(folder: Path, columns: Sequence[str], encoding: str | None) -> Iterator[tuple[str, ...]]:
    """The values of ``columns`` for each file, label by label; a file without text is an error."""
    for label in label_folders(folder):
        for file in sorted(filter(is_text, label.iterdir())):
            text = "".join(Lines(file, encoding).read()).strip()
            if not text:
                raise data_error(f"{file} is empty. Delete it.")
            row = {"id": f"{label.name}/{file.name}", "text": text, "label": label.name}
            yield tuple(row[column] for column in columns)
