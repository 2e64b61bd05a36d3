"""Assembly, truncation and collation of features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertkit.batch import IGNORE, Feature
from bertkit.contracts import Tokens
from bertkit.data.features import assemble, assemble_windows, collate, stack, truncated_lengths
from bertkit.errors import BertkitError


class CharacterTokenizer:
    """A tokenizer whose tokens are characters."""

    vocab_size, pad_id, unk_id, cls_id, sep_id, mask_id = 99, 0, 1, 2, 3, 4
    start_id, end_id = cls_id, sep_id
    between_ids: tuple[int, ...] = (3,)

    def encode(self, text: str) -> Tokens:
        return Tokens([ord(character) - 87 for character in text], [(at, at + 1) for at in range(len(text))])

    def encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(chr(number + 87) for number in ids)


def test_a_single_text_is_between_cls_and_sep() -> None:
    feature = assemble(CharacterTokenizer(), "abc", max_length=13)
    assert feature.input_ids.tolist() == [2, 10, 11, 12, 3]
    assert feature.segment_ids.tolist() == [0, 0, 0, 0, 0]
    assert feature.offsets is not None
    assert feature.offsets.tolist() == [[0, 0], [0, 1], [1, 2], [2, 3], [0, 0]]


def test_a_pair_has_two_segments() -> None:
    feature = assemble(CharacterTokenizer(), "abc", "de", max_length=13, labels={"class": 1})
    assert feature.input_ids.tolist() == [2, 10, 11, 12, 3, 13, 14, 3]
    assert feature.segment_ids.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert feature.labels == {"class": 1}


def test_an_empty_second_text_is_still_a_pair() -> None:
    assert assemble(CharacterTokenizer(), "a", "", max_length=13).input_ids.tolist() == [2, 10, 3, 3]


def test_truncation_removes_tokens_of_the_longer_text() -> None:
    feature = assemble(CharacterTokenizer(), "abcdefg", "hij", max_length=9)
    assert CharacterTokenizer().decode(feature.input_ids[1:4].tolist()) == "abc"
    assert CharacterTokenizer().decode(feature.input_ids[5:8].tolist()) == "hij"


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 60))
def test_truncated_lengths_equal_the_loop_of_the_reference(first: int, second: int, max_tokens: int) -> None:
    a, b = first, second
    while a + b > max_tokens:
        if a > b:
            a -= 1
        else:
            b -= 1
    assert truncated_lengths(first, second, max_tokens) == (a, b)


def test_collate_pads_at_the_end() -> None:
    short = Feature(np.array([2, 7, 3]), np.zeros(3, int), {"class": 1, "tags": np.array([5, 6, 7]), "number": 0.5})
    long = Feature(np.arange(13), np.ones(13, int), {"class": 0, "tags": np.arange(13), "number": 1.5})
    batch = collate([short, long], pad_id=42)
    assert batch.input_ids.shape == (2, 13)
    assert batch.input_ids[0, 3:].tolist() == [42] * 10
    assert batch.segment_ids[0].sum() == 0
    assert batch.attention_mask.sum(1).tolist() == [3, 13]
    assert batch.labels["tags"][0, 3:].tolist() == [IGNORE] * 10
    assert batch.labels["class"].dtype == torch.long
    assert batch.labels["number"].tolist() == [0.5, 1.5]
    assert batch.num_tokens == 16
    assert len(batch) == 2


@pytest.mark.parametrize("name", ["input_ids", "segment_ids", "attention_mask"])
def test_all_tensors_of_a_batch_move_together(name: str) -> None:
    batch = collate([Feature(np.arange(7), np.zeros(7, int), {"class": 1})], pad_id=0).to(torch.device("meta"))
    assert getattr(batch, name).device.type == "meta"
    assert batch.labels["class"].device.type == "meta"


def test_tokens_with_characters_are_padded_word_by_word() -> None:
    """Also where they are choices; a feature is as long as it has words."""
    short, long = (Feature(np.full((words, 7), words), np.zeros(words, int)) for words in (2, 5))
    assert [len(short), len(long), len(stack([short, long], labels={}))] == [2, 5, 5]
    for batch in (collate([short, long], pad_id=0), collate([stack([short, long], labels={})], pad_id=0)):
        assert batch.input_ids.shape == (2, 5, 7)
        assert batch.segment_ids.shape == (2, 5)
        assert batch.input_ids[:, :, 3].tolist() == [[2, 2, 0, 0, 0], [5] * 5]
        assert batch.num_tokens == 7


def test_the_tokens_between_two_texts_are_those_of_the_tokenizer() -> None:
    class TwoSeparators(CharacterTokenizer):
        between_ids = (3, 3)

    feature = assemble(TwoSeparators(), "abc", "de", max_length=7)
    assert feature.input_ids.tolist() == [
        2,
        *CharacterTokenizer().encode("ab").ids,
        3,
        3,
        *CharacterTokenizer().encode("d").ids,
        3,
    ]
    assert feature.segment_ids.tolist() == [0, 0, 0, 0, 0, 1, 1]
    windows = assemble_windows(TwoSeparators(), "abcdefghij", "xy", max_length=11, stride=3)
    assert [len(window) for window in windows] == [11, 11, 10]
    assert len(assemble(TwoSeparators(), "abc", "de", max_length=4)) == 4
    with pytest.raises(BertkitError, match="max_length is 3, and a row has 4 special tokens"):
        assemble(TwoSeparators(), "abc", "de", max_length=3)
    with pytest.raises(BertkitError, match="max_length is 4, and a row has 4 special tokens"):
        assemble_windows(TwoSeparators(), "abc", "de", max_length=4, stride=1)
