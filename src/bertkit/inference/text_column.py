"""One column of texts in a file of any format, named by the user or guessed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bertkit.errors import usage_error
from bertkit.formats.table_formats import Format
from bertkit.formats.tables import Table, require_text
from bertkit.storage.suffixes import suffix_of
from bertkit.task_files.columns import guess_texts, looks_like_name


@dataclass(frozen=True)
class TextColumn:
    """The column ``name`` of ``table``."""

    table: Table
    name: str

    @property
    def path(self) -> Path:
        """The file."""
        return self.table.path

    @property
    def sentence(self) -> str:
        """Which column is read, for the user; empty for a file of lines, which has no columns."""
        return "" if self.table.form.kind == "lines" else f"{self.path.name}: text = {self.name}"

    def texts(self) -> Iterator[str]:
        """The texts in the order of the file."""
        for row in self.table.rows(self.name):
            yield require_text(row.cells[0], self.name, self.path, row.line)


def open_text_column(path: Path, name: str | None = None, *, encoding: str | None = None) -> TextColumn:
    """The column ``name`` of a table, or else the one that looks like its text; of a ``.txt``, its lines."""
    if suffix_of(path) == ".txt":
        if name is not None:
            raise usage_error(f"{path} has lines and no columns: leave out --text.")
        return TextColumn(Table(path, Format(kind="lines", names=("text",)), encoding=encoding), "text")
    table = Table(path, encoding=encoding)
    if name is not None:
        table.require(name)
    elif len(table.columns) == 1 and not table.form.names and not looks_like_name(table.columns[0]):
        raise usage_error(
            f'{path}, line 1: "{table.columns[0]}" may be the name of the column or a text. Add a line "text" before '
            "it, or give --text with that line."
        )
    return TextColumn(table, name or guess_texts(table, text=None, pair=None).first)
