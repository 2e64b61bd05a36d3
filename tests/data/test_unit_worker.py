"""The results of work units."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.data.document_hash import DocumentHash
from bertkit.data.parts import DocumentsPart
from bertkit.data.repeated_lines import hash_lines
from bertkit.data.sources import TextChunk
from bertkit.data.tokenizing import ChunkTokenizer, TokenizerFile
from bertkit.data.unit_worker import PartDocuments, UnitWorker, WorkUnit
from bertkit.text.wordpiece import train

CHUNKS = [TextChunk(3, "Some words."), TextChunk(4, " \n"), TextChunk(5, "More words. "), TextChunk(5, "And more.")]


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> TokenizerFile:
    tokenizer = train(["Some words and more words"], vocab_size=99)
    tokenizer.save(tmp_path)
    return TokenizerFile(tmp_path / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id)


def hash_of(*texts: str) -> int:
    text_hash = DocumentHash()
    for text in texts:
        text_hash.add(text)
    return text_hash.value


def test_documents_are_hashed_and_numbered_through_the_unit(tokenizer_file: TokenizerFile) -> None:
    parts = (DocumentsPart(tuple(CHUNKS), starts_inside=False), DocumentsPart(tuple(CHUNKS[:1]), starts_inside=True))
    result = UnitWorker(tokenizer_file)(WorkUnit(tuple(enumerate(parts)), 500, 0))
    some, more = hash_of("Some words."), hash_of("More words.", "And more.")
    assert result.parts == (
        PartDocuments((some, None, more), (0, 0, 0), False, True, 0),
        PartDocuments((some,), (0,), True, True, 0),
    )
    assert [block.number for block in result.blocks] == [0, 2, 2, 3]
    expected = ChunkTokenizer(tokenizer_file).tokenize([*CHUNKS, CHUNKS[0]], 500)
    assert [block.tokens.tolist() for block in result.blocks] == [block.tokens.tolist() for block in expected]


def test_a_unit_that_is_not_tokenized_has_its_documents_only(tokenizer_file: TokenizerFile) -> None:
    unit = WorkUnit(((0, DocumentsPart(tuple(CHUNKS), starts_inside=False)),), 500, 0, tokenized=False)
    result = UnitWorker(tokenizer_file)(unit)
    assert len(result.parts[0].hashes) == 3
    assert result.blocks == []


def test_dropped_lines_are_in_no_hash_and_no_block(tokenizer_file: TokenizerFile) -> None:
    menu = "Some words and more words"
    chunks = (TextChunk(0, f"{menu}\nSome words."), TextChunk(0, f"More.\n{menu}"), TextChunk(1, f"{menu}\n"))
    unit = WorkUnit(((0, DocumentsPart(chunks, starts_inside=False)),), 500, 0)
    result = UnitWorker(tokenizer_file, frozenset(hash_lines(menu)))(unit)
    assert result.parts == (PartDocuments((hash_of("Some words.", "More."), None), (2, 1), False, True, 0),)
    expected = ChunkTokenizer(tokenizer_file).tokenize([TextChunk(0, "Some words."), TextChunk(0, "More.")], 500)
    assert [block.tokens.tolist() for block in result.blocks] == [block.tokens.tolist() for block in expected]
