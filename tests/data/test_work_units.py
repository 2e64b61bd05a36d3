"""Dividing files into work units, and numbering the documents of their results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bertkit.data import sources, work_units
from bertkit.data.sources import ReadOptions
from bertkit.data.tokenizing import TokenizedBlock, TokenizerFile
from bertkit.data.unit_worker import UnitWorker, WorkUnit
from bertkit.data.work_units import UnitReader
from bertkit.formats.compression import ByteStream
from bertkit.text.wordpiece import train

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_units, "_UNIT_BYTES", 30)
    monkeypatch.setattr(sources, "MAX_CHUNK_CHARACTERS", 20)


@pytest.fixture
def worker(tmp_path: Path) -> UnitWorker:
    tokenizer = train([" ".join(LETTERS)] * 3, vocab_size=99)
    (tmp_path / "tokenizer").mkdir()
    tokenizer.save(tmp_path / "tokenizer")
    return UnitWorker(
        TokenizerFile(
            tmp_path / "tokenizer" / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id, tokenizer.special_tokens
        )
    )


def write(path: Path, *texts: str) -> Path:
    path.write_text("\n".join(json.dumps(text) for text in texts))
    return path


def read(reader: UnitReader, worker: UnitWorker) -> Iterator[tuple[WorkUnit, list[tuple[int, TokenizedBlock]]]]:
    for unit in reader.units():
        yield unit, reader.accept(unit, worker(unit))


def numbers(reader: UnitReader, worker: UnitWorker) -> list[list[int]]:
    """The numbers of the documents of each unit."""
    return [sorted({number for number, _ in blocks}) for _, blocks in read(reader, worker)]


def text_of(unit: WorkUnit) -> str:
    return "".join(chunk.text for _, part in unit.parts for chunk in part.read().chunks)


def test_units_are_filled_with_small_files_in_order(tmp_path: Path) -> None:
    texts = ["a" * 13, "b" * 11, "c" * 5, "d" * 20, "e" * 13]
    files = [write(tmp_path / f"{text[0]}.jsonl", text) for text in texts]
    assert list(map(text_of, UnitReader(files, ReadOptions()).units())) == [
        "".join(each) for each in (texts[:2], texts[2:4], texts[4:])
    ]


def test_documents_are_numbered_through_all_files(tmp_path: Path, worker: UnitWorker) -> None:
    files = [write(tmp_path / "a.jsonl", "a", "b"), write(tmp_path / "b.jsonl", "c", *LETTERS[:9])]
    reader = UnitReader(files, ReadOptions())
    assert numbers(reader, worker) == [[0, 1], [2, 3, 4, 5, 6, 7, 8], [9, 10, 11]]
    assert reader.documents == 12


def test_dropped_documents_are_skipped(tmp_path: Path, worker: UnitWorker) -> None:
    files = [write(tmp_path / "a.jsonl", "a", "b", "c"), write(tmp_path / "b.jsonl", "d", "e")]
    reader = UnitReader(files, ReadOptions(), dropped=[frozenset({1}), frozenset({0})])
    blocks = [block for _, each in read(reader, worker) for block in each]
    found = [(number, *block.tokens.tolist()) for number, block in blocks]
    plain = UnitReader([write(tmp_path / "c.jsonl", "a", "c", "e")], ReadOptions())
    expected = [(number, *block.tokens.tolist()) for _, each in read(plain, worker) for number, block in each]
    assert found == expected
    assert [number for number, *_ in found] == [0, 1, 2]
    assert reader.documents == 3


@pytest.mark.parametrize("suffix", [".md", ".txt"])
def test_all_parts_of_a_document_have_its_number(tmp_path: Path, worker: UnitWorker, suffix: str) -> None:
    """Of a document in lines, and of one that is read as a whole."""
    file = tmp_path / f"a{suffix}"
    file.write_text("word " * 20)
    after = write(tmp_path / "b.jsonl", "a")
    reader = UnitReader([file, after], ReadOptions())
    found = numbers(reader, worker)
    assert len(found) > 3
    assert sorted({number for each in found for number in each}) == [0, 1]
    assert reader.documents == 2


@pytest.mark.parametrize("lengths", [(1, 2, 1), (7, 1, 9), (1, 30, 2, 25), (3, 4, 5, 6, 7)])
@pytest.mark.parametrize("dropped", [frozenset(), frozenset({0}), frozenset({1})])
def test_documents_across_parts_are_those_of_the_file(
    tmp_path: Path, worker: UnitWorker, lengths: Sequence[int], dropped: frozenset[int]
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("\n\n".join("\n".join(["It is a."] * length) for length in lengths))
    reader = UnitReader([file], ReadOptions(boundary="blank-line"), dropped=[dropped])
    counts: dict[int, int] = {}
    for _, blocks in read(reader, worker):
        for number, block in blocks:
            counts[number] = counts.get(number, 0) + len(block.sentence_lengths)
    expected = [length for number, length in enumerate(lengths) if number not in dropped]
    assert counts == dict(enumerate(expected))
    assert reader.documents == len(expected)


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


def test_the_done_bytes_are_not_summed_over_all_files_for_every_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 20,000 files such a sum took 2 ms of every unit."""
    files = [write(tmp_path / f"{number}.jsonl", "text" * 5) for number in range(37)]
    reader = UnitReader(files, ReadOptions())
    asked: list[Path] = []

    def position(stream: ByteStream) -> int:
        asked.append(stream.path)
        return positions.get(stream.path, 0)

    positions: dict[Path, int] = {}
    monkeypatch.setattr(
        ByteStream,
        "position",
        property(position, lambda stream, value: positions.update({stream.path: value})),
        raising=False,
    )
    done = [unit.done_bytes for unit in reader.units()]
    assert len(asked) <= 2 * len(files)
    assert done == [sum(file.stat().st_size for file in files[: number + 2]) for number in range(36)] + [
        reader.total_bytes
    ]


def test_duplicates_are_counted_and_blank_documents_are_not_duplicates(tmp_path: Path, worker: UnitWorker) -> None:
    files = [write(tmp_path / "a.jsonl", "one", "", " ", " one\n"), write(tmp_path / "b.jsonl", "one", "two")]
    reader = UnitReader(files, ReadOptions())
    list(read(reader, worker))
    assert reader.count_duplicates() == 2
    assert reader.documents == 6


def test_copies_of_a_large_document_are_duplicates_wherever_they_are(tmp_path: Path, worker: UnitWorker) -> None:
    long = "".join(f"It is {letter}.\n" for letter in LETTERS)
    file = tmp_path / "a.txt"
    file.write_text(f"{long}\nIt is a.\nIt is b.\n\n{long}\nIt is c.\n\n{long}It is z.\n")
    reader = UnitReader([file], ReadOptions(boundary="blank-line"))
    assert len(list(read(reader, worker))) > 20
    assert reader.documents == 5
    assert reader.count_duplicates() == 1


def test_records_describe_every_file(tmp_path: Path, worker: UnitWorker) -> None:
    file, text = write(tmp_path / "a.jsonl", "one", "two"), tmp_path / "b.txt"
    text.write_bytes(b"It is \xff.\n" * 9)
    reader = UnitReader([file, text], ReadOptions(on_bad_bytes="replace"))
    list(read(reader, worker))
    record, other = reader.records({str(file): "digest", str(text): "other"})
    assert (record.file, record.bytes, record.sha256) == (str(file), file.stat().st_size, "digest")
    assert (record.boundary, record.documents, record.replaced_characters) == ("record", 2, 0)
    assert (other.boundary, other.sentence_lines, other.documents) == ("file", True, 1)
    assert other.replaced_characters == 9
