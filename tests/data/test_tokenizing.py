"""Tokenizing work units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bertkit.data.sources import TextChunk
from bertkit.data.tokenizing import TokenizerFile, UnitTokenizer, WorkUnit
from bertkit.text import byte_bpe
from bertkit.text.wordpiece import WordPiece, train


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> TokenizerFile:
    tokenizer = train(["Some words and more words"], vocab_size=99)
    tokenizer.save(tmp_path)
    return TokenizerFile(tmp_path / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id)


def test_sentences_are_encoded_as_if_each_were_alone(tmp_path: Path, tokenizer_file: TokenizerFile) -> None:
    text = "Some words. More wor\0ds! [SEP] And [PAD]?\n\n\u200b\n\n\0\n\nWords . \ufffd.\n\n한글, é."
    chunk = TextChunk(0, text)
    tokenizer = WordPiece.load(tmp_path)
    alone = [ids for sentence in chunk.sentences() if (ids := tokenizer.encode(sentence).ids)]
    (found,) = UnitTokenizer(tokenizer_file).tokenize(WorkUnit((chunk,), (1,), 0))
    assert found.sentence_lengths.tolist() == [len(ids) for ids in alone]
    assert found.tokens.tolist() == [id for ids in alone for id in ids]
    assert found.unknown == sum(ids.count(tokenizer.unk_id) for ids in alone) > 0
    (nothing,) = UnitTokenizer(tokenizer_file).tokenize(WorkUnit((TextChunk(0, " \0\n"),), (1,), 0))
    assert (len(nothing.tokens), len(nothing.sentence_lengths)) == (0, 0)


def test_results_keep_the_numbers_and_keys_of_their_chunks(tokenizer_file: TokenizerFile) -> None:
    unit = WorkUnit((TextChunk(7, "Some words."), TextChunk(9, "More.")), (13, 17), 0)
    assert [(each.number, each.key) for each in UnitTokenizer(tokenizer_file).tokenize(unit)] == [(7, 13), (9, 17)]


def test_a_sentence_in_byte_level_bpe_keeps_the_space_before_it(tmp_path: Path) -> None:
    tokenizer = byte_bpe.train(["Some words. More words."] * 3, vocab_size=299)
    tokenizer.save(tmp_path)
    file = TokenizerFile(tmp_path / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id)
    (chunk,) = UnitTokenizer(file).tokenize(WorkUnit((TextChunk(0, "Some words. More words."),), (1,), 0))
    assert chunk.tokens.tolist() == tokenizer.encode("Some words. More words.").ids
    assert len(chunk.sentence_lengths) == 2


@pytest.mark.parametrize(("vocab_size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_take_two_bytes_if_the_vocabulary_allows(tmp_path: Path, vocab_size: int, dtype: type) -> None:
    assert TokenizerFile(tmp_path, vocab_size, 0).dtype is dtype
