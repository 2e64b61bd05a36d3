"""The results of work units."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from bertkit.data.document_hash import DocumentHash
from bertkit.data.parts import DocumentsPart
from bertkit.data.repeated_lines import hash_lines
from bertkit.data.sources import TextChunk
from bertkit.data.tokenizing import ChunkTokenizer, TokenizerFile
from bertkit.data.unit_worker import TokenizedDocument, UnitWorker, WorkUnit
from bertkit.text.wordpiece import train

CHUNKS = [TextChunk(3, "Some words."), TextChunk(4, " \n"), TextChunk(5, "More words. "), TextChunk(5, "And more.")]


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> TokenizerFile:
    tokenizer = train(["Some words and more words"], vocab_size=99)
    tokenizer.save(tmp_path)
    return TokenizerFile(tmp_path / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id, tokenizer.special_tokens)


def hash_of(*texts: str) -> int:
    text_hash = DocumentHash()
    for text in texts:
        text_hash.add(text)
    return text_hash.value


def tokens_of(documents: Iterable[TokenizedDocument]) -> list[list[list[int]]]:
    """The tokens of every block of every document."""
    return [[block.tokens.tolist() for block in document.blocks] for document in documents]


def test_documents_have_their_hashes_and_blocks(tokenizer_file: TokenizerFile) -> None:
    parts = (DocumentsPart(tuple(CHUNKS), starts_inside=False), DocumentsPart(tuple(CHUNKS[:1]), starts_inside=True))
    first, second = UnitWorker(tokenizer_file)(WorkUnit(tuple(enumerate(parts)), 500, 0))
    some, more = hash_of("Some words."), hash_of("More words.", "And more.")
    assert (first.starts_inside, first.ends_inside, first.replaced) == (False, True, 0)
    assert (second.starts_inside, second.ends_inside, second.replaced) == (True, True, 0)
    assert [each.text_hash for each in (*first.documents, *second.documents)] == [some, None, more, some]
    of_some, _, *of_more = ChunkTokenizer(tokenizer_file).tokenize(CHUNKS, 500)
    expected = [[block.tokens.tolist() for block in blocks] for blocks in (of_some, [], [*of_more[0], *of_more[1]])]
    assert tokens_of(first.documents) == expected
    assert tokens_of(second.documents) == expected[:1]


def test_a_unit_that_is_not_tokenized_has_its_documents_only(tokenizer_file: TokenizerFile) -> None:
    unit = WorkUnit(((0, DocumentsPart(tuple(CHUNKS), starts_inside=False)),), 500, 0, tokenized=False)
    (part,) = UnitWorker(tokenizer_file)(unit)
    assert [each.text_hash is None for each in part.documents] == [False, True, False]
    assert tokens_of(part.documents) == [[], [], []]


def test_dropped_lines_are_in_no_hash_and_no_block(tokenizer_file: TokenizerFile) -> None:
    menu = "Some words and more words"
    chunks = (TextChunk(0, f"{menu}\nSome words."), TextChunk(0, f"More.\n{menu}"), TextChunk(1, f"{menu}\n"))
    unit = WorkUnit(((0, DocumentsPart(chunks, starts_inside=False)),), 500, 0)
    (part,) = UnitWorker(tokenizer_file, frozenset(hash_lines(menu)))(unit)
    assert [each.text_hash for each in part.documents] == [hash_of("Some words.", "More."), None]
    assert [each.dropped_lines for each in part.documents] == [2, 1]
    kept = ChunkTokenizer(tokenizer_file).tokenize([TextChunk(0, "Some words."), TextChunk(0, "More.")], 500)
    assert tokens_of(part.documents) == [[block.tokens.tolist() for blocks in kept for block in blocks], []]
