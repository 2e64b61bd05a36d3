"""The corpus of the quickstart."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from bertkit.data.shards import read_manifest
from bertkit.errors import BertkitError
from bertkit.quick_start import corpus, docstrings
from bertkit.quick_start.corpus import describe_text, prepare_corpus, read_documents
from bertkit.quick_start.docstrings import Document, Source
from bertkit.report.progress import Progress

TEXT = " ".join(f"The {noun} is in the old house." for noun in ("lamp", "chair", "table", "clock"))


def write_packages(folder: Path) -> dict[str, Path]:
    """Two packages of three modules, each of 999 bytes or a little more."""
    for package in ("first", "second"):
        (folder / package).mkdir()
        for number in range(3):
            text = TEXT.replace("old", f"{package} {'big ' * number}")
            (folder / package / f"m{number}.py").write_text(f'"""{text}"""\n' + "#" * 999)
    return {package: folder / package for package in ("first", "second")}


def test_documents_are_read_up_to_the_size_that_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = write_packages(tmp_path)
    everything = read_documents(packages, 1.0, Progress("quiet"))
    assert len(everything) == 6
    monkeypatch.setattr(corpus, "_SOURCE_MEGABYTES_PER_MINUTE", 0.005)
    some = read_documents(packages, 1.0, Progress("quiet"))
    assert some == everything[: len(some)]
    assert 2 <= len(some) <= 5


def test_reading_ends_in_time_when_there_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = write_packages(tmp_path)
    monkeypatch.setattr(corpus, "_MIN_DOCUMENTS", 2)
    monkeypatch.setattr(docstrings, "_SOURCES_PER_CALL", 1)  # processes still read when there is enough
    assert len(read_documents(packages, 1e-9, Progress("quiet"))) == 2


def end_at_once(sources: Sequence[Source]) -> list[list[list[str]]]:
    os._exit(7)


def test_the_end_of_a_process_that_reads_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docstrings, "_read_all", end_at_once)
    with pytest.raises(
        BertkitError, match=r"a process of the quickstart ended with exit code 7: its error is above\.$"
    ):
        read_documents(write_packages(tmp_path), 1.0, Progress("quiet"))


def test_less_than_a_minute_has_the_text_of_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = write_packages(tmp_path)
    monkeypatch.setattr(corpus, "_SOURCE_MEGABYTES_PER_MINUTE", 0.005)
    some = [read_documents(packages, minutes, Progress("quiet")) for minutes in (0.1, 1.0)]
    assert len(some[0]) == len(some[1])


def test_the_corpus_is_kept_as_a_file_and_as_shards(tmp_path: Path) -> None:
    documents = [
        Document(package="a", module=f"a.m{number}", sentences=(f"This is number {number}.", "It ends here."))
        for number in range(99)
    ]
    tokenizer = prepare_corpus(documents, tmp_path / "new", Progress("quiet"))
    lines = (tmp_path / "new" / "corpus.jsonl").read_text().splitlines()
    assert json.loads(lines[7]) == {
        "package": "a",
        "module": "a.m7",
        "text": "This is number 7. It ends here.",
    }
    assert read_manifest(tmp_path / "new" / "data").documents == 99
    assert len(tokenizer.encode("number").ids) == 1


def test_the_text_is_described() -> None:
    documents = [Document(package=name, module=name, sentences=("x" * 150_000,)) for name in "aab"]
    assert describe_text(documents).startswith("0.5 MB, the documentation of 2 Python packages")
