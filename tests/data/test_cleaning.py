"""Which documents are left out of a corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.data.cleaning import Cleaning, Dropped, find_dropped
from bertkit.data.repeated_lines import hash_lines
from bertkit.data.sources import ReadOptions

THIRTEEN = "the quick brown fox jumps over a lazy dog and then it sleeps"
LONG = " ".join(f"word{number}" for number in range(200))


def write(path: Path, *documents: str) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in documents))
    return path


def drop(files: list[Path], cleaning: Cleaning) -> Dropped:
    return find_dropped(files, ReadOptions(), cleaning)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [
        write(tmp_path / "a.jsonl", "One.", "", f"See: {THIRTEEN}.", LONG, "", " One."),
        write(tmp_path / "b.jsonl", "Two.", "One.", LONG + " more", f"See: {THIRTEEN}."),
    ]


def test_nothing_is_dropped_by_default(files: list[Path]) -> None:
    assert drop(files, Cleaning()) == Dropped(numbers=(frozenset(), frozenset()))
    assert Cleaning().describe() == {}


def test_exact_duplicates_are_dropped_and_blank_documents_are_not(files: list[Path]) -> None:
    dropped = drop(files, Cleaning(duplicates="exact"))
    assert dropped == Dropped(numbers=(frozenset({5}), frozenset({1, 3})), duplicates=3)


def test_near_duplicates_are_dropped(files: list[Path]) -> None:
    pytest.importorskip("datasketch")
    dropped = drop(files, Cleaning(duplicates="near"))
    assert dropped == Dropped(numbers=(frozenset({5}), frozenset({1, 2, 3})), duplicates=4)


def test_documents_with_text_of_an_evaluation_file_are_dropped(files: list[Path], tmp_path: Path) -> None:
    dev = tmp_path / "dev.tsv"
    dev.write_text(f"sentence\tlabel\n{THIRTEEN.upper()}\t1\n")
    dropped = drop(files, Cleaning(overlap=(dev,)))
    assert dropped == Dropped(numbers=(frozenset({2}), frozenset({3})), overlapping=2)
    assert drop(files, Cleaning(duplicates="exact", overlap=(dev,))) == Dropped(
        numbers=(frozenset({2, 5}), frozenset({1, 3})), duplicates=2, overlapping=2
    )
    before = Cleaning(overlap=(dev,)).describe()
    dev.write_text("changed")
    assert Cleaning(overlap=(dev,)).describe() != before


def test_lines_of_documents_that_are_kept_are_counted(tmp_path: Path) -> None:
    menu = "Home | About us | Contact"
    documents = [f"{menu}\nOne.", f"{menu}\nOne.", f"Two.\n{menu}", "Three."]
    file = write(tmp_path / "a.jsonl", *documents)
    assert drop([file], Cleaning(repeated_lines=3)).lines == frozenset(hash_lines(menu))
    assert drop([file], Cleaning(repeated_lines=4)).lines == frozenset()
    without = drop([file], Cleaning(repeated_lines=3, duplicates="exact"))
    assert without == Dropped(numbers=(frozenset({1}),), duplicates=1)
    assert Cleaning(repeated_lines=3).describe() != Cleaning(repeated_lines=4).describe() != {}
