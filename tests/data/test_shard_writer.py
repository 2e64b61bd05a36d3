"""Writing shards: what is in them, what is held out, and continuing after the last good one."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bertkit.data import shard_writer
from bertkit.data.document_hash import KEYS
from bertkit.data.shard_writer import ShardWriter, forget_journal, has_journal
from bertkit.data.shards import Shard
from bertkit.data.tokenizing import TokenizedBlock

LOW, HIGH = 0, KEYS - 1


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_writer, "_SHARD_TOKENS", 13)


def block(number: int, *sentences: int, key: int = HIGH, unknown: int = 0) -> tuple[int, TokenizedBlock]:
    """The number of a document, and a block of it with sentences of these lengths; its tokens are that number."""
    tokens = np.full(sum(sentences), number, dtype=np.uint16)
    return number, TokenizedBlock(key, tokens, np.array(sentences, dtype=np.int64), unknown)


def tokens_of(folder: Path, writer: ShardWriter, split: str) -> list[list[int]]:
    """The tokens of every document of a split."""
    shards = [Shard.open(folder / record.file) for record in writer.records if record.split == split]
    return [
        shard.tokens[begin:end].tolist()
        for shard in shards
        for begin, end in pairwise(shard.sentence_offsets[shard.document_offsets].tolist())
    ]


def test_blocks_of_a_document_are_one_document_in_a_shard(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0)
    writer.add([block(0, 3, 2), block(0, 4), block(2, 5, unknown=2)])
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
        writer.add([block(number, 5)])
    assert [record.tokens for record in writer.records] == [15]
    writer.finish()
    assert [record.tokens for record in writer.records] == [15, 10]
    writer.finish()
    assert len(writer.records) == 2


def test_many_short_sentences_fill_a_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_writer, "_SHARD_SENTENCES", 3)
    writer = ShardWriter(tmp_path, heldout=0)
    writer.add([block(0, 1, 1, 1)])
    assert len(writer.records) == 1


def test_blocks_with_low_keys_are_held_out_of_their_documents(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0.25)
    writer.add(block(number, 3, 2, key=LOW + number if at == 1 else HIGH) for number in range(2) for at in range(4))
    assert tokens_of(tmp_path, writer, "heldout") == [[0] * 5, [1] * 5]
    assert tokens_of(tmp_path, writer, "train") == [[0] * 5, [0] * 10, [1] * 5, [1] * 10]
    assert writer.documents == 2


def test_neighbouring_blocks_that_are_held_out_are_two_documents(tmp_path: Path) -> None:
    """Next-sentence pairs need two."""
    writer = ShardWriter(tmp_path, heldout=0.2)
    writer.add(block(0, 3, key=key) for key in (HIGH, 7, 9, *[HIGH] * 7))
    assert tokens_of(tmp_path, writer, "heldout") == [[0] * 3, [0] * 3]


def test_the_limit_of_the_first_shard_is_that_of_all(tmp_path: Path) -> None:
    """So that the copies of a block are in one split."""
    writer = ShardWriter(tmp_path, heldout=0.25)
    for first in (0, 8, 16):
        writer.add([block(first + at, 3, key=at + 1) for at in range(8)])
    assert [each[0] % 8 for each in tokens_of(tmp_path, writer, "heldout")] == [0, 1] * 3


def test_a_resumed_writer_keeps_the_limit(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0.25)
    writer.add([block(at, 3, key=at + 1) for at in range(8)])
    resumed = ShardWriter.resume(tmp_path, heldout=0.25)
    later = [block(8 + at, 3, key=7 * at) for at in range(8)]
    resumed.add(later)
    assert tokens_of(tmp_path, resumed, "heldout") == [[0] * 3, [1] * 3, [8] * 3]


def test_a_document_that_continues_is_counted_once(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0)
    writer.add([block(0, 9), block(1, 9)])
    writer.add([block(1, 9), block(2, 9)])
    assert tokens_of(tmp_path, writer, "train") == [[0] * 9, [1] * 9, [1] * 9, [2] * 9]
    assert writer.documents == 3


@pytest.mark.parametrize("damaged", ["train-00001.safetensors", "journal-00001.json"])
def test_writing_continues_after_the_last_good_shard(tmp_path: Path, damaged: str) -> None:
    writer = ShardWriter(tmp_path, heldout=0)
    for number in range(3):
        writer.add([block(number, 13)])
    assert ShardWriter.resume(tmp_path, heldout=0).units == 3
    (tmp_path / damaged).write_bytes(b"{")
    resumed = ShardWriter.resume(tmp_path, heldout=0)
    assert (resumed.units, resumed.documents) == (1, 1)
    for number in (1, 2):
        resumed.add([block(number, 13)])
    assert resumed.records == writer.records


def test_the_journal_can_be_forgotten(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, heldout=0)
    assert not has_journal(tmp_path)
    writer.add([block(0, 13)])
    assert has_journal(tmp_path)
    forget_journal(tmp_path)
    assert not has_journal(tmp_path)
    assert ShardWriter.resume(tmp_path, heldout=0).units == 0
