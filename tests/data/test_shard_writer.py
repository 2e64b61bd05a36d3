"""Writing shards: what is in them, what is held out, and continuing after the last good one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bertkit.data import shard_writer
from bertkit.data.document_hash import KEYS
from bertkit.data.shard_writer import ShardWriter, forget_journal, has_journal
from bertkit.data.shards import Shard
from bertkit.data.tokenizing import TokenizedChunk

LOW, HIGH = 0, KEYS - 1


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_writer, "_SHARD_TOKENS", 13)


def chunk(number: int, *sentences: int, key: int = HIGH, unknown: int = 0) -> TokenizedChunk:
    """A chunk of document ``number`` with sentences of these lengths, every token of which is ``number``."""
    tokens = np.full(sum(sentences), number, dtype=np.uint16)
    return TokenizedChunk(number, key, tokens, np.array(sentences, dtype=np.int64), unknown)


def test_chunks_of_a_document_are_one_document_in_a_shard(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0)
    writer.add([chunk(0, 3, 2), chunk(0, 4), chunk(1), chunk(2, 5, unknown=2)])
    (record,) = writer.records
    assert (record.file, record.tokens, record.sentences, record.documents) == ("train-00000.safetensors", 14, 4, 2)
    shard = Shard.open(tmp_path / record.file)
    assert shard.tokens.tolist() == [0] * 9 + [2] * 5
    assert shard.sentence_offsets.tolist() == [0, 3, 5, 9, 14]
    assert shard.document_offsets.tolist() == [0, 3, 4]
    assert (writer.documents, writer.unknown_tokens, writer.units) == (2, 2, 1)


def test_a_shard_is_written_when_it_is_full_and_the_rest_at_the_end(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0)
    for number in range(5):
        writer.add([chunk(number, 5)])
    assert [record.tokens for record in writer.records] == [15]
    writer.finish()
    assert [record.tokens for record in writer.records] == [15, 10]
    writer.finish()
    assert len(writer.records) == 2


def test_many_short_sentences_fill_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_writer, "_SHARD_SENTENCES", 3)
    writer = ShardWriter(tmp_path, heldout=0)
    writer.add([chunk(0, 1, 1, 1)])
    assert len(writer.records) == 1


def test_documents_with_low_keys_are_held_out(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0.5)
    writer.add([chunk(number, 3, key=LOW if number % 2 else HIGH) for number in range(6)])
    train, heldout = writer.records
    assert (train.split, heldout.split) == ("train", "heldout")
    assert Shard.open(tmp_path / heldout.file).tokens.tolist() == [1] * 3 + [3] * 3 + [5] * 3


@pytest.mark.parametrize(("documents", "least"), [(1, 0), (2, 1), (3, 1), (4, 2), (13, 2)])
def test_at_least_two_documents_are_held_out_or_half_of_fewer(tmp_path: Path, documents: int, least: int) -> None:
    writer = ShardWriter(tmp_path, heldout=1e-9)
    writer.add([chunk(number, 13, key=HIGH - number) for number in range(documents)])
    heldout = [record.documents for record in writer.records if record.split == "heldout"]
    assert sum(heldout) == least


def test_one_document_is_left_to_train_on(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0.9)
    writer.add([chunk(number, 13, key=LOW) for number in range(7)])
    assert {record.split: record.documents for record in writer.records} == {"train": 1, "heldout": 6}


def test_a_document_that_continues_stays_in_its_split(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0.5)
    writer.add([chunk(0, 9), chunk(1, 9, key=LOW)])
    writer.add([chunk(1, 9, key=LOW), chunk(2, 9)])
    heldout = [record for record in writer.records if record.split == "heldout"]
    assert [Shard.open(tmp_path / record.file).tokens.tolist() for record in heldout] == [[1] * 9, [1] * 9]
    assert writer.documents == 3


@pytest.mark.parametrize("damaged", ["train-00001.safetensors", "journal-00001.json"])
def test_writing_continues_after_the_last_good_shard(tmp_path: Path, damaged: str) -> None:
    writer = ShardWriter(tmp_path, heldout=0)
    for number in range(3):
        writer.add([chunk(number, 13)])
    assert ShardWriter.resume(tmp_path, heldout=0).units == 3
    (tmp_path / damaged).write_bytes(b"{")
    resumed = ShardWriter.resume(tmp_path, heldout=0)
    assert (resumed.units, resumed.documents) == (1, 1)
    for number in (1, 2):
        resumed.add([chunk(number, 13)])
    assert resumed.records == writer.records


def test_the_journal_can_be_forgotten(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0)
    assert not has_journal(tmp_path)
    writer.add([chunk(0, 13)])
    assert has_journal(tmp_path)
    forget_journal(tmp_path)
    assert not has_journal(tmp_path)
    assert ShardWriter.resume(tmp_path, heldout=0).units == 0
