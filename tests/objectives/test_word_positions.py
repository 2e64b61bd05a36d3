from __future__ import annotations

import torch

from bertkit.batch import WORD_STARTS, Batch
from bertkit.objectives._word_positions import find_starts, find_words, pick, place_words

STARTS = torch.tensor([[0, 1, 0, 1, 1], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]).bool()


def test_every_token_is_a_word_unless_word_starts_are_given(padded_batch: Batch) -> None:
    assert torch.equal(find_starts(padded_batch), padded_batch.attention_mask)
    starts = (torch.arange(13) % 3 == 1).long().expand(4, 13)
    assert torch.equal(find_starts(padded_batch.with_labels(**{WORD_STARTS: starts})), starts == 1)


def test_words_are_listed_in_reading_order() -> None:
    positions, is_word = find_words(STARTS, STARTS.device)
    assert [row[real].tolist() for row, real in zip(positions, is_word, strict=True)] == [[1, 3, 4], [], [0]]


def test_states_are_picked_by_position() -> None:
    states = torch.arange(15).view(3, 5, 1).float()
    positions, is_word = find_words(STARTS, STARTS.device)
    assert pick(states, positions)[is_word].flatten().tolist() == [1, 3, 4, 10]


def test_values_of_words_are_placed_at_their_first_tokens() -> None:
    values = torch.arange(1, 10).view(3, 3, 1).float()
    _, is_word = find_words(STARTS, STARTS.device)
    assert place_words(values, is_word, STARTS)[..., 0].tolist() == [[0, 1, 0, 2, 3], [0] * 5, [7, 0, 0, 0, 0]]
