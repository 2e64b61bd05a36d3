"""Which files hold text, by their names, and the files of text in a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Literal

from bertkit.errors import count_of, data_error, did_you_mean, usage_error
from bertkit.storage.locations import VOCABULARY_FOLDER
from bertkit.storage.remote import RemotePath
from bertkit.storage.suffixes import COMPRESSIONS, suffix_of

TextKind = Literal["txt", "jsonl", "parquet", "mediawiki", "wet", "html", "markdown"]

_KINDS: dict[str, TextKind] = {
    "": "txt",
    ".txt": "txt",
    ".log": "txt",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".xml": "mediawiki",
    ".wet": "wet",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
}

_WITH_PANDAS = (
    "python -c 'import sys, pandas; pandas.{reader}(sys.argv[1]).to_json(sys.argv[2], orient=\"records\", lines=True)' "
    "{{source}} {{stem}}.jsonl"
)
_CONVERTERS = {
    ".pdf": "pdftotext {source} {stem}.txt",
    ".doc": "soffice --headless --convert-to txt --outdir {folder} {source}",
    **dict.fromkeys((".docx", ".odt", ".rtf", ".epub", ".tex", ".rst"), "pandoc -t plain {source} -o {stem}.txt"),
    ".csv": _WITH_PANDAS.format(reader="read_csv"),
    ".tsv": _WITH_PANDAS.format(reader="read_table"),
    ".xlsx": _WITH_PANDAS.format(reader="read_excel"),
    ".json": _WITH_PANDAS.format(reader="read_json"),
}
"""Commands that write the text of files that are not read."""

_WIKI_EXTRACTOR_NAME = re.compile(r"wiki_\d+")
"""The only files without a suffix that are read from a folder, where others are licences and programs."""

_VOCABULARIES = ("vocab.txt", "merges.txt")

_NOT_UTF_8 = re.compile("[\udc80-\udcff]")
"""How Python spells the bytes of a name that are not UTF-8."""


@dataclass(frozen=True, kw_only=True)
class TextFiles:
    """The ``files`` that were named or found in named folders, and what these folders have beside them.

    ``skipped`` files hold no text, and ``links`` are to folders.
    """

    files: tuple[Path, ...]
    skipped: tuple[Path, ...] = ()
    links: tuple[Path, ...] = ()

    def describe_skipped(self) -> list[str]:
        """``skipped 3 files without text: a.png, b.css, c.js``, and links to folders, which are not followed."""
        lines = []
        if self.skipped:
            lines.append(f"skipped {count_of(len(self.skipped), 'file')} without text: {_list_some(self.skipped)}")
        if self.links:
            lines.append(f"skipped links to folders, which may be named too: {_list_some(self.links)}")
        return lines


def _list_some(paths: Sequence[Path]) -> str:
    return ", ".join([*map(str, paths[:3]), *(["..."] if len(paths) > 3 else [])])


def find_text_files(paths: Sequence[Path]) -> TextFiles:
    """The files among ``paths`` in their order, with each folder replaced by the files of text below it, sorted.

    Hidden files and folders are left out. A folder without a file of text is an error.
    """
    files: list[Path] = []
    skipped: list[Path] = []
    links: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        below = list(_walk(path, links))
        all_below = set(below)
        readable = [each for each in below if is_text_in_folder(each) and not _is_vocabulary(each, all_below)]
        if not readable:
            raise data_error(f"{path} has no file of text among {count_of(len(below), 'file')}. {_READABLE}")
        files += readable
        skipped += sorted(all_below - set(readable))
    return TextFiles(files=tuple(files), skipped=tuple(skipped), links=tuple(links))


def check_text_file(path: Path) -> TextKind:
    """The kind of a file, by its name; one without a suffix is text. A missing file is an error."""
    suffix = suffix_of(path)
    if suffix in _CONVERTERS:
        stem = path.with_suffix("") if path.suffix.lower() == suffix else path.with_suffix("").with_suffix("")
        places = {"source": path, "stem": stem, "folder": path.parent}
        command = _CONVERTERS[suffix].format(**{name: quote(str(place)) for name, place in places.items()})
        raise usage_error(f"{path} is not read by bertkit. Convert it to text: {command}")
    if suffix == ".warc":
        raise usage_error(
            f"{path} holds web pages with their HTTP headers. Use the WET file of the crawl, or .html files."
        )
    if suffix not in _KINDS:
        raise usage_error(f"{path} is not a file of text. {_READABLE} If it is plain text, let its name end in .txt.")
    if _NOT_UTF_8.search(str(path)):
        raise usage_error(f"{path} has a name that is not UTF-8, which no record can hold. Rename it.")
    if path.is_dir():
        raise usage_error(f"{path} is a folder; name the files inside it.")
    # Checked before the work starts, so that a misspelt name does not end it after an hour.
    if not path.is_file():
        raise data_error(f"no file at {path}.{_suggest_name(path)}")
    return _KINDS[suffix]


_READABLE = f"bertkit reads {' '.join(filter(None, _KINDS))}, each plain or {' '.join(COMPRESSIONS)}."


def _walk(folder: Path, links: list[Path]) -> Iterator[Path]:
    """All files below ``folder``, in sorted order whatever the file system, and links to nothing: reading one is an
    error. Links to folders are not followed, and added to ``links``."""
    if isinstance(folder, RemotePath):
        yield from folder.files_below()
        return
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), links)
        elif entry.is_dir():
            links.append(Path(entry.path))
        elif entry.is_file() or entry.is_symlink():
            yield Path(entry.path)


def _is_vocabulary(path: Path, files: Collection[Path]) -> bool:
    return path.name in _VOCABULARIES and any(path.parent / name in files for name in VOCABULARY_FOLDER)


def is_text_in_folder(path: Path) -> bool:
    """Whether a file of a folder is read as text, by its name; logs are if they are named."""
    suffix = suffix_of(path)
    if not suffix:
        return _WIKI_EXTRACTOR_NAME.match(path.name) is not None
    return suffix in _KINDS and suffix != ".log"


def _suggest_name(path: Path) -> str:
    if not path.parent.is_dir():
        return f" There is no folder {path.parent} either."
    return did_you_mean(path.name, [each.name for each in path.parent.iterdir() if each != path])
