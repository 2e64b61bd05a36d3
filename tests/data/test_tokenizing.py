"""Tokenizing chunks."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from bertkit.data.sources import TextChunk
from bertkit.data.tokenizing import ChunkTokenizer, TokenizerFile
from bertkit.storage.atomic import read_object, write_json
from bertkit.text import byte_bpe
from bertkit.text.wordpiece import WordPiece, train


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> TokenizerFile:
    tokenizer = train(["Some words and more words"], vocab_size=99)
    tokenizer.save(tmp_path)
    return TokenizerFile(tmp_path / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id, tokenizer.special_tokens)


def test_sentences_are_encoded_as_if_each_were_alone(tmp_path: Path, tokenizer_file: TokenizerFile) -> None:
    text = "Some words. More wor\0ds! [SEP] And [PAD]?\n\n\u200b\n\n\0\n\nWords . \ufffd.\n\n한글, é."
    chunk = TextChunk(0, text)
    tokenizer = WordPiece.load(tmp_path)
    alone = [ids for sentence in chunk.sentences() if (ids := tokenizer.encode(sentence).ids)]
    ((found,),) = ChunkTokenizer(tokenizer_file).tokenize([chunk], 500)
    assert found.sentence_lengths.tolist() == [len(ids) for ids in alone]
    assert found.tokens.tolist() == [id for ids in alone for id in ids]
    assert found.unknown == sum(ids.count(tokenizer.unk_id) for ids in alone) > 0
    assert list(ChunkTokenizer(tokenizer_file).tokenize([TextChunk(0, " \0\n")], 500)) == [[]]


def test_further_special_tokens_in_a_text_are_found_as_in_encode(tmp_path: Path) -> None:
    """Such as the markers of entities, which a folder may mark as special; [MASK] stays ordinary text."""
    train(["Some words and more words"], vocab_size=99).save(tmp_path)
    settings = {"additional_special_tokens": ["[E1]"]}
    write_json(tmp_path / "tokenizer_config.json", {**read_object(tmp_path / "tokenizer_config.json"), **settings})
    WordPiece.load(tmp_path).save(tmp_path / "saved")
    tokenizer = WordPiece.load(tmp_path / "saved")
    file = TokenizerFile(
        tmp_path / "saved" / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id, tokenizer.special_tokens
    )
    text = "Some [E1] words [MASK]"
    ((found,),) = ChunkTokenizer(file).tokenize([TextChunk(0, text)], 500)
    assert tokenizer.tokens_to_ids(["[E1]"])[0] in found.tokens
    assert found.tokens.tolist() == tokenizer.encode(text).ids


def test_a_chunk_is_divided_into_blocks_of_sentences(tokenizer_file: TokenizerFile) -> None:
    tokenizer = ChunkTokenizer(tokenizer_file)
    chunks = tuple(TextChunk(number, "Some words. \u200b\n\nMore wor\ufffds! " * 4) for number in (7, 9))
    whole, parts = (list(chain(*tokenizer.tokenize(chunks, size))) for size in (500, 20))
    assert len(whole) == 2 < len(parts)
    assert whole[0].key == whole[1].key
    assert len({each.key for each in parts}) < len(parts), "copies have the same key"
    for field in ("tokens", "sentence_lengths"):
        expected, found = (np.concatenate([getattr(each, field) for each in some]) for some in (whole, parts))
        assert np.array_equal(found, expected)
    assert sum(each.unknown for each in whole) == sum(each.unknown for each in parts) > 0


def test_a_sentence_in_byte_level_bpe_keeps_the_space_before_it(tmp_path: Path) -> None:
    tokenizer = byte_bpe.train(["Some words. More words."] * 3, vocab_size=299)
    tokenizer.save(tmp_path)
    file = TokenizerFile(tmp_path / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id, tokenizer.special_tokens)
    ((chunk,),) = ChunkTokenizer(file).tokenize([TextChunk(0, "Some words. More words.")], 500)
    assert chunk.tokens.tolist() == tokenizer.encode("Some words. More words.").ids
    assert len(chunk.sentence_lengths) == 2


@pytest.mark.parametrize("text", ["So\0me words. \0 More\0\0 words.\n\n\0", "Some words. More words."])
def test_byte_level_bpe_keeps_the_character_nul(tmp_path: Path, text: str) -> None:
    """No text is unknown to it, and decoding restores the text."""
    tokenizer = byte_bpe.train(["Some words. More words."] * 3, vocab_size=299)
    tokenizer.save(tmp_path)
    file = TokenizerFile(tmp_path / "tokenizer.json", tokenizer.vocab_size, tokenizer.unk_id, tokenizer.special_tokens)
    chunks = [TextChunk(0, text), TextChunk(1, "Words."), TextChunk(2, " ")]
    (first,), (second,), _ = ChunkTokenizer(file).tokenize(chunks, 500)
    sentences = chunks[0].sentences()
    expected = [tokenizer.encode(f" {each}" if place else each).ids for place, each in enumerate(sentences)]
    assert first.tokens.tolist() == [id for ids in expected for id in ids]
    assert first.sentence_lengths.tolist() == [len(ids) for ids in expected]
    assert second.tokens.tolist() == tokenizer.encode("Words.").ids
    assert tokenizer.decode(first.tokens.tolist()).count("\0") == text.count("\0")


@pytest.mark.parametrize(("vocab_size", "dtype"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_take_two_bytes_if_the_vocabulary_allows(tmp_path: Path, vocab_size: int, dtype: type) -> None:
    assert TokenizerFile(tmp_path, vocab_size, 0, ()).dtype is dtype
