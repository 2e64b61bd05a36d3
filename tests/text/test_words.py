"""Whole words with their characters, in texts and in shards."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bertkit
from bertkit.contracts import SubwordTokenizer
from bertkit.data.sources import TextChunk
from bertkit.data.tokenizing import ChunkTokenizer, TokenizerFile
from bertkit.errors import BertkitError
from bertkit.text.characters import spell_word
from bertkit.text.words import WordLevel, train

TEXTS = ["The mill, the MILL's dog:", "the the mill naïve", "rivers ran the"]
LENGTH = 9


@cache
def trained_once() -> WordLevel:
    return train(TEXTS, vocab_size=99, word_length=LENGTH)


@pytest.fixture
def words() -> WordLevel:
    return trained_once()


def spelled(id: int, word: str) -> tuple[int, ...]:
    return (id, *spell_word(word, length=LENGTH).tolist())


class TestTraining:
    def test_words_are_sorted_by_frequency_after_the_special_ones(self, words: WordLevel) -> None:
        assert words.vocabulary[:6] == ["<PAD>", "<UNK>", "<S>", "</S>", "the", "mill"]
        once = ["'", ",", ":", "MILL", "The", "dog", "naïve", "ran", "rivers", "s"]
        assert words.vocabulary[6:] == once, "words of equal frequency are in alphabetical order"

    def test_a_small_vocabulary_has_the_most_frequent_words(self) -> None:
        assert train(TEXTS, vocab_size=7).vocabulary[4:] == ["the", "mill", "'"]

    @pytest.mark.parametrize(
        ("texts", "sizes", "message"),
        [
            (TEXTS, {"vocab_size": 4}, "--vocab-size is 4; it must be at least 5"),
            (TEXTS, {"word_length": 2}, "word_length is 2; it must be at least 3"),
            ([" \n", ""], {}, "nothing but white space"),
        ],
    )
    def test_training_without_words_is_an_error(self, texts: list[str], sizes: dict[str, int], message: str) -> None:
        with pytest.raises(BertkitError, match=message):
            train(texts, **sizes)


class TestUse:
    def test_it_implements_the_tokenizer_protocol(self, words: WordLevel) -> None:
        assert isinstance(words, SubwordTokenizer)
        assert (words.pad_id, words.unk_id, words.mask_id) == (0, 1, 1)
        assert words.cls_id == spelled(2, "<S>")
        assert words.between_ids == [words.sep_id] == [spelled(3, "</S>")]
        assert words.cased

    def test_a_token_is_a_word_and_its_characters(self, words: WordLevel) -> None:
        tokens = words.encode(" the, mill")
        assert tokens.ids == [spelled(4, "the"), spelled(7, ","), spelled(5, "mill")]
        assert tokens.offsets == [(1, 4), (4, 5), (6, 10)]

    def test_an_unknown_word_has_its_own_characters(self, words: WordLevel) -> None:
        assert words.encode("the fjord <S>").ids[1:] == [spelled(1, word) for word in ("fjord", "<", "S", ">")]

    def test_a_known_word_is_spelled_as_in_the_vocabulary(self, words: WordLevel) -> None:
        tokens = words.encode("mi\u200bll")
        assert tokens.ids == [spelled(5, "mill")]
        assert tokens.offsets == [(0, 5)]

    def test_a_special_word_in_a_text_is_recognized_on_request(self, words: WordLevel) -> None:
        assert words.encode("ran </S>", specials=True).ids[1] == words.sep_id

    def test_ids_are_decoded_to_text(self, words: WordLevel) -> None:
        assert words.decode(words.tokens_to_ids(["the", "mill", ",", "ran", "<UNK>"])) == "the mill, ran <UNK>"

    @given(st.text())
    def test_any_text_can_be_encoded(self, text: str) -> None:
        tokens = trained_once().encode(text)
        (same,) = trained_once().encode_batch([text])
        assert tokens == same
        assert all(len(token) == 1 + LENGTH for token in tokens.ids)
        assert all(start < end for start, end in tokens.offsets)

    def test_a_lone_surrogate_is_an_unknown_word_without_characters(self, words: WordLevel) -> None:
        assert words.encode("the \ud83d").ids == [spelled(4, "the"), spelled(1, "")]


class TestShards:
    def test_ids_of_a_shard_get_the_characters_of_their_words(self, words: WordLevel) -> None:
        encoded = words.encode("the mill, naïve").ids
        ids = np.array([2, *(token[0] for token in encoded), 3, 0], dtype=np.uint16)
        expected = [words.cls_id, *encoded, words.sep_id, (0,) * (1 + LENGTH)]
        assert words.spell_all(ids).tolist() == list(map(list, expected))

    def test_preparation_gives_the_same_ids(self, words: WordLevel, tmp_path: Path) -> None:
        words.save(tmp_path)
        tokenizer = ChunkTokenizer(
            TokenizerFile(tmp_path / "tokenizer.json", words.vocab_size, words.unk_id, words.special_tokens)
        )
        text = "The mill ran. A fjord, naïve: the"
        ((chunk,),) = tokenizer.tokenize([TextChunk(0, text)], 500)
        assert chunk.tokens.tolist() == [token[0] for token in words.encode(text).ids]
        assert chunk.unknown == 3, "the full stop, A and fjord"


class TestFiles:
    def test_tokenizer_show_leaves_out_the_characters(self, words: WordLevel, tmp_path: Path) -> None:
        words.save(tmp_path)
        shown = [(view.token, view.id, view.start) for view in bertkit.tokenizer_show(tmp_path, "the fjord")]
        assert shown == [("the", 4, 0), ("<UNK>", 1, 4)]

    def test_a_saved_tokenizer_is_loaded_unchanged(self, words: WordLevel, tmp_path: Path) -> None:
        words.save(tmp_path)
        loaded = WordLevel.load(tmp_path)
        assert loaded.fingerprint == words.fingerprint
        assert loaded.encode("the fjord") == words.encode("the fjord")

    def test_the_fingerprint_depends_on_the_word_length(self, words: WordLevel) -> None:
        assert train(TEXTS, vocab_size=99, word_length=7).fingerprint != words.fingerprint

    @pytest.mark.parametrize(
        ("file", "content", "message"),
        [
            ("tokenizer.json", None, "has no tokenizer.json"),
            (
                "tokenizer.json",
                {"model": {"type": "BPE"}},
                "is a BPE tokenizer; a vocabulary of words has",
            ),
            ("tokenizer.json", [], "is not a tokenizer"),
            ("tokenizer.json", {"model": {"type": "WordLevel"}}, "is not a tokenizer"),
            ("tokenizer_config.json", {"word_length": "long"}, "word_length must be a whole number from 3 to 1,000"),
            ("tokenizer_config.json", [], "tokenizer_config.json is not a JSON object"),
        ],
    )
    def test_a_bad_folder_is_an_error(
        self, words: WordLevel, tmp_path: Path, file: str, content: object, message: str
    ) -> None:
        words.save(tmp_path)
        if content is None:
            (tmp_path / file).unlink()
        else:
            (tmp_path / file).write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(BertkitError, match=message):
            WordLevel.load(tmp_path)

    def test_padding_must_be_the_first_word(self, words: WordLevel, tmp_path: Path) -> None:
        words.save(tmp_path)
        file = tmp_path / "tokenizer.json"
        description = json.loads(file.read_text(encoding="utf-8"))
        vocabulary = description["model"]["vocab"]
        vocabulary["<PAD>"], vocabulary["the"] = vocabulary["the"], vocabulary["<PAD>"]
        del description["added_tokens"]
        file.write_text(json.dumps(description), encoding="utf-8")
        with pytest.raises(BertkitError, match="<PAD> as word 4; it must be the first"):
            WordLevel.load(tmp_path)
