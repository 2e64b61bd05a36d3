"""Dividing files into work units."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.data import sources, work_units
from bertkit.data.sources import ReadOptions
from bertkit.data.work_units import UnitReader


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_units, "_UNIT_CHARACTERS", 30)
    monkeypatch.setattr(sources, "MAX_CHUNK_CHARACTERS", 20)


def write(path: Path, *texts: str) -> Path:
    path.write_text("\n".join(json.dumps(text) for text in texts))
    return path


def test_units_are_filled_with_chunks_in_order(tmp_path: Path) -> None:
    texts = ["a" * 13, "b" * 14, "c" * 5, "d" * 20, "e" * 13]
    units = list(UnitReader([write(tmp_path / "a.jsonl", *texts)], ReadOptions()).units())
    assert [[chunk.text for chunk in unit.chunks] for unit in units] == [texts[:2], texts[2:4], texts[4:]]


def test_documents_are_numbered_through_all_files(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.jsonl", "one", "two"), write(tmp_path / "b.jsonl", "three")]
    reader = UnitReader(files, ReadOptions())
    chunks = [chunk for unit in reader.units() for chunk in unit.chunks]
    assert [(chunk.number, chunk.text) for chunk in chunks] == [(0, "one"), (1, "two"), (2, "three")]
    assert reader.documents == 3


def test_dropped_documents_are_skipped(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.jsonl", "one", "two", "three"), write(tmp_path / "b.jsonl", "four", "five")]
    reader = UnitReader(files, ReadOptions(), dropped=[frozenset({1}), frozenset({0})])
    chunks = [chunk for unit in reader.units() for chunk in unit.chunks]
    assert [(chunk.number, chunk.text) for chunk in chunks] == [(0, "one"), (1, "three"), (2, "five")]
    assert reader.documents == 3


def test_all_chunks_of_a_document_have_its_number(tmp_path: Path) -> None:
    text = "word " * 20
    units = list(UnitReader([write(tmp_path / "a.jsonl", text)], ReadOptions()).units())
    assert len(units) > 2
    assert {chunk.number for unit in units for chunk in unit.chunks} == {0}
    assert "".join(chunk.text for unit in units for chunk in unit.chunks) == text


def test_blocks_are_longer_in_a_larger_corpus(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", "text" * 100_000)
    few, many = (UnitReader([file], ReadOptions(), heldout=share).block_characters for share in (0.01, 0.2))
    assert few == 500
    assert many == int(file.stat().st_size * 0.2 / 32)


def test_done_bytes_grow_to_the_total(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.jsonl", *["text" * 5] * 7) for name in "ab"]
    reader = UnitReader(files, ReadOptions())
    done = [unit.done_bytes for unit in reader.units()]
    assert done == sorted(done)
    assert done[-1] == reader.total_bytes == sum(file.stat().st_size for file in files)


def test_duplicates_are_counted_and_blank_documents_are_not_duplicates(tmp_path: Path) -> None:
    files = [write(tmp_path / "a.jsonl", "one", "", " ", " one\n"), write(tmp_path / "b.jsonl", "one", "two")]
    reader = UnitReader(files, ReadOptions())
    list(reader.units())
    assert reader.count_duplicates() == 2
    assert reader.documents == 6


def test_records_describe_every_file(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", "one", "two")
    reader = UnitReader([file], ReadOptions())
    list(reader.units())
    (record,) = reader.records({str(file): "digest"})
    assert (record.file, record.bytes, record.sha256) == (str(file), file.stat().st_size, "digest")
    assert (record.boundary, record.documents, record.replaced_characters) == ("record", 2, 0)
